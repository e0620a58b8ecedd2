"""Images for attention: patches as tokens, pooling by attention, gates, and questions.

An image `(batch, channel, height, width)` becomes a set of tokens by cutting it into
patches, or a map of features by convolutions. What attends to it returns its weights,
so that one can look at where it looked.
"""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.blocks import Encoder, EncoderBlock, Residual
from course_utils.shapes import (
    Bool,
    Float,
    Int,
    require_sequence,
    require_sizes,
    shape_of,
)

# ----------------------------------------------------------------- patches as tokens


def require_patches(images: Tensor, size: int) -> None:
    """Refuse images that can't be cut into whole patches, saying what would do."""
    require_sizes(size=size)
    if images.dim() != 4:
        raise ValueError(
            f"images has shape {shape_of(images)}, expected (batch, channel, height, "
            "width); grey images need a channel axis: `images[:, None]`."
        )
    height, width = images.shape[-2:]
    if height % size or width % size:
        raise ValueError(
            f"an image of {height} x {width} pixels can't be cut into patches of "
            f"{size} x {size}; choose a size that divides both sides, or pad the image."
        )


def patchify(
    images: Float[Tensor, "batch channel height width"], size: int
) -> Float[Tensor, "batch patch d_patch"]:
    """Cut images into square patches, and make each a vector: a sentence of patches.

    Patches in reading order; in a patch channel by channel, each in reading order. $H W
    / size^2$ tokens of width $C size^2$: not a number is lost. Taught in chapter 14.
    """
    require_patches(images, size)
    return rearrange(images, "b c (r y) (q x) -> b (r q) (c y x)", y=size, x=size)


def unpatchify(
    patches: Float[Tensor, "batch patch d_patch"], size: int, n_rows: int
) -> Float[Tensor, "batch channel height width"]:
    """Put the patches back: the inverse of `patchify`, for `n_rows` rows of patches.

    Taught in chapter 14.
    """
    require_sizes(size=size, n_rows=n_rows)
    if patches.dim() != 3 or patches.shape[1] % n_rows or patches.shape[2] % size**2:
        raise ValueError(
            f"patches has shape {shape_of(patches)}, expected (batch, a multiple of "
            f"{n_rows} patches, a multiple of {size * size} numbers); give the size "
            "and the number of rows that they were cut with."
        )
    layout = "b (r q) (c y x) -> b c (r y) (q x)"
    return rearrange(patches, layout, r=n_rows, y=size, x=size)


def require_places(patches: Tensor, d_patch: int, n_places: int) -> None:
    """Refuse patches of another width or number than the model has places for."""
    require_sequence(patches, d_patch, "patches")
    if patches.shape[1] != n_places:
        raise ValueError(
            f"patches has shape {shape_of(patches)}, expected {n_places} patches, one "
            "for each learned place; cut the images as those in training, or make the "
            f"model with n_patches={patches.shape[1]}."
        )


class VisionTransformer(nn.Module):
    """Read an image as a sentence of patches, with an encoder made for sentences.

    $x_i = patch_i W + b + PE_i$, a learned class token in front, encoder blocks; the
    class token's last state is read out. Returns logits and each layer's weights (None
    unless asked for). Taught in chapter 14.
    """

    def __init__(
        self,
        n_patches: int,
        d_patch: int,
        n_classes: int,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 2,
    ):
        super().__init__()
        self.embed = nn.Linear(d_patch, d_model)
        self.class_token = nn.Parameter(0.1 * torch.randn(1, d_model))
        self.positions = nn.Parameter(0.1 * torch.randn(n_patches, d_model))
        self.encoder = Encoder(n_layers, d_model, n_heads, 2 * d_model)
        self.readout = nn.Linear(d_model, n_classes)

    def forward(
        self, patches: Float[Tensor, "batch patch d_patch"], need_weights: bool = False
    ) -> tuple[
        Float[Tensor, "batch n_classes"],
        Float[Tensor, "layer batch head token token"] | None,
    ]:
        require_places(patches, self.embed.in_features, len(self.positions))
        x = self.embed(patches) + self.positions
        class_token = self.class_token.expand(len(patches), 1, -1)
        states, weights = self.encoder(
            torch.cat([class_token, x], dim=1), need_weights=need_weights
        )
        return self.readout(states[:, 0]), weights


# ------------------------------------------------------------- attention over a map


def require_map(features: Tensor, channels: int) -> None:
    """Refuse anything but a map of features with that many channels."""
    if features.dim() != 4 or features.shape[1] != channels or 0 in features.shape[2:]:
        raise ValueError(
            f"features has shape {shape_of(features)}, expected (batch, {channels}, "
            "height, width); the channels stand second, as convolutions leave them."
        )


class SpatialAttention(nn.Module):
    """Average a map of features, with weights that say where to look.

    $s_j = w . x_j + b$ for each place $j$, $a = softmax_j(s_j)$, $c = sum_j a_j x_j$:
    attention with one learned query. Returns $c$ and the weights. Taught in chapter 14.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.score = nn.Linear(channels, 1)

    def forward(
        self, features: Float[Tensor, "batch channel height width"]
    ) -> tuple[Float[Tensor, "batch channel"], Float[Tensor, "batch height width"]]:
        require_map(features, self.score.in_features)
        places = rearrange(features, "b c y x -> b (y x) c")
        weights = torch.softmax(self.score(places).squeeze(-1), dim=-1)
        context = (weights[:, None] @ places).squeeze(1)
        return context, weights.unflatten(-1, features.shape[-2:])


class SqueezeExcite(nn.Module):
    """Scale every channel of a map by a gate that depends on the whole image.

    Squeeze: $z_c$ is the mean of channel $c$; excite: $g = sigmoid(relu(z W_1) W_2)$,
    one gate between 0 and 1 for each channel. Returns $g_c f_c$ and the gates. Taught
    in chapter 14.
    """

    def __init__(self, channels: int, d_hidden: int):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.narrow = nn.Linear(channels, d_hidden)
        self.wide = nn.Linear(d_hidden, channels)

    def forward(
        self, features: Float[Tensor, "batch channel height width"]
    ) -> tuple[
        Float[Tensor, "batch channel height width"], Float[Tensor, "batch channel"]
    ]:
        require_map(features, self.narrow.in_features)
        squeezed = self.norm(features.mean(dim=(2, 3)))
        gates = torch.sigmoid(self.wide(torch.relu(self.narrow(squeezed))))
        return features * gates[:, :, None, None], gates


# ------------------------------------------------------------- questions to an image


class PatchEncoder(nn.Module):
    """Turn every patch into a token by the same small network, and say where it was.

    Taught in chapter 14.
    """

    def __init__(self, n_patches: int, d_patch: int, d_model: int, d_hidden: int = 96):
        super().__init__()
        self.wide = nn.Linear(d_patch, d_hidden)
        self.narrow = nn.Linear(d_hidden, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.positions = nn.Parameter(0.3 * torch.randn(n_patches, d_model))

    def forward(
        self, patches: Float[Tensor, "batch patch d_patch"]
    ) -> Float[Tensor, "batch patch d_model"]:
        require_places(patches, self.wide.in_features, len(self.positions))
        features = self.narrow(torch.relu(self.wide(patches)))
        return self.norm(features) + self.positions


class QuestionBlock(nn.Module):
    """Let the words of a question ask the image, then talk among themselves.

    Cross-attention from words to patches, then an encoder block over the words. Returns
    the words and who looked where. Taught in chapter 14.
    """

    def __init__(self, d_model: int, n_heads: int = 1):
        super().__init__()
        self.around = Residual(d_model)
        self.ask = MultiHeadAttention(d_model, n_heads)
        self.block = EncoderBlock(d_model, n_heads, 2 * d_model)

    def forward(
        self,
        words: Float[Tensor, "batch word d_model"],
        patches: Float[Tensor, "batch patch d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[
        Float[Tensor, "batch word d_model"], Float[Tensor, "batch head word patch"]
    ]:
        normed = self.around.before(words)
        context, weights = self.ask(normed, patches, mask, need_weights=True)
        words, _ = self.block(self.around.after(words, context))
        return words, weights


def require_question(question: Tensor) -> None:
    """Refuse questions that have not two words each: one word would be used twice."""
    if question.dim() != 2 or question.shape[1] != 2:
        raise ValueError(
            f"question has shape {shape_of(question)}, expected (batch, 2): the word "
            "that says what is asked for, then the one that names an object."
        )


class CrossReader(nn.Module):
    """Answer a question about an image: the words look at its patches.

    Taught in chapter 14.
    """

    def __init__(
        self, n_words: int, n_answers: int, n_patches: int, d_patch: int, d: int = 64
    ):
        super().__init__()
        self.see = PatchEncoder(n_patches, d_patch, d)
        self.word = nn.Embedding(n_words, d)
        self.order = nn.Parameter(0.3 * torch.randn(2, d))
        self.ask = QuestionBlock(d)
        self.readout = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, n_answers))

    def forward(
        self,
        patches: Float[Tensor, "batch patch d_patch"],
        question: Int[Tensor, "batch 2"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch n_answers"], Float[Tensor, "batch 2 patch"]]:
        require_question(question)
        words = self.word(question) + self.order
        words, weights = self.ask(words, self.see(patches), mask)
        return self.readout(words.mean(dim=1)), weights.squeeze(1)


check_arguments(__name__)
