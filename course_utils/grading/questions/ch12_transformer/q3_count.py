"""`count`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.blocks import DecoderBlock, EncoderBlock


def attention_size(d: int) -> int:
    return 4 * d * d + 4 * d


def feed_forward_size(d: int, h: int) -> int:
    return 2 * d * h + d + h


def count(d_model: int, d_hidden: int) -> tuple[int, int]:
    d, thinking = d_model, feed_forward_size(d_model, d_hidden)
    encoder = attention_size(d) + thinking + 2 * 2 * d
    return encoder, 2 * attention_size(d) + thinking + 3 * 2 * d


def draw_widths(rng: np.random.Generator) -> list[Args]:
    return [tuple(8 * n for n in sizes(rng, 2, least=4)) for _ in range(3)]


def one_norm(d: int, h: int) -> tuple[int, int]:
    thinking = feed_forward_size(d, h) + 2 * d
    return attention_size(d) + thinking, 2 * attention_size(d) + thinking


def both_are(name: str, hint: str, encoder: Any, decoder: Any) -> Mistake:
    """A slip in both numbers; the judge also looks for it in either alone."""
    return Mistake(name, hint, lambda d, h: (encoder(d, h), decoder(d, h)))


QUESTION = Question(
    id="12.3",
    title="How many parameters does a block have?",
    answer="count",
    arguments=("d_model", "d_hidden"),
    outputs=(Output("encoder"), Output("decoder")),
    reference=count,
    tolerance=1e-9,
    difficulty="medium",
    minutes=10,
    next_step="add up the parts: attention, feed-forward, norms; matrices and biases.",
    parts=(
        Part("the encoder's block", 1, draw_widths, view=first),
        Part("the decoder's block", 2, draw_widths, view=second),
    ),
    mistakes=(
        both_are(
            "output_bias_too_wide",
            "both biases of the feed-forward part are counted with d_hidden numbers: "
            "that of its second layer has d_model",
            lambda d, h: count(d, h)[0] + h - d,
            lambda d, h: count(d, h)[1] + h - d,
        ),
        both_are(
            "hidden_is_four_times",
            "the hidden width is taken to be 4 d_model, as is usual: here it is given, "
            "`d_hidden`",
            lambda d, h: count(d, 4 * d)[0],
            lambda d, h: count(d, 4 * d)[1],
        ),
        both_are(
            "one_bias_for_attention",
            "attention is counted with a single bias: queries, keys, values and output "
            "have one each",
            lambda d, h: count(d, h)[0] - 3 * d,
            lambda d, h: count(d, h)[1] - 6 * d,
        ),
        both_are(
            "one_matrix_for_thinking",
            "the feed-forward layer is counted with one matrix: it has a wide layer "
            "and one that leads back, each with a bias",
            lambda d, h: count(d, h)[0] - d * h - d,
            lambda d, h: count(d, h)[1] - d * h - d,
        ),
        both_are(
            "cross_without_output",
            "the decoder's second attention is counted with three projections: it has "
            "an output matrix as well",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - d * d - d,
        ),
        both_are(
            "twice_the_encoder",
            "the decoder's block is counted as two of the encoder's: it has a second "
            "attention and a third norm, but one feed-forward layer",
            lambda d, h: count(d, h)[0],
            lambda d, h: 2 * count(d, h)[0],
        ),
        both_are(  # in the encoder alone, two slips give one number
            "four_vectors_missing",
            "four vectors of d_model numbers are missing: the scales and shifts of two "
            "norms, or the biases of attention's four projections",
            lambda d, h: count(d, h)[0] - 4 * d,
            lambda d, h: count(d, h)[1] - 4 * d - 1,
        ),
        both_are(
            "five_biases_missing",
            "the matrices are right, some of the vectors are not: there are biases in "
            "attention, biases in the feed-forward layer, and two vectors a norm",
            lambda d, h: count(d, h)[0] - 5 * d - h,
            lambda d, h: count(d, h)[1] - 5 * d - h - 1,
        ),
        both_are(
            "attention_biases_missing",
            "the projections of attention are counted without their biases: queries, "
            "keys, values and output have d_model each",
            lambda d, h: count(d, h)[0] - 4 * d,
            lambda d, h: count(d, h)[1] - 8 * d,
        ),
        both_are(
            "thinking_biases_missing",
            "the feed-forward layer is counted without its biases: d_hidden numbers in "
            "the wide layer, d_model in the other",
            lambda d, h: count(d, h)[0] - d - h,
            lambda d, h: count(d, h)[1] - d - h,
        ),
        both_are(
            "attention_complete_alone",
            "attention is right; of the feed-forward layer the biases are missing, and "
            "the norms are not counted",
            lambda d, h: count(d, h)[0] - 5 * d - h,
            lambda d, h: count(d, h)[1] - 7 * d - h,
        ),
        Mistake(
            "one_norm_a_block",
            "one norm is counted in each block: every layer has its own, so two in the "
            "encoder's and three in the decoder's",
            one_norm,
        ),
        both_are(
            "matrices_alone",
            "the matrices are right, but nothing else is counted: biases, and a scale "
            "and a shift for every norm",
            lambda d, h: 4 * d * d + 2 * d * h,
            lambda d, h: 8 * d * d + 2 * d * h,
        ),
        both_are(
            "no_biases",
            "the biases are missing: every projection and both layers of the "
            "feed-forward part have one",
            lambda d, h: 4 * d * d + 2 * d * h + 4 * d,
            lambda d, h: 8 * d * d + 2 * d * h + 6 * d,
        ),
        both_are(
            "no_norms",
            "the norms are missing: each has a scale and a shift for every feature",
            lambda d, h: attention_size(d) + feed_forward_size(d, h),
            lambda d, h: 2 * attention_size(d) + feed_forward_size(d, h),
        ),
        both_are(
            "norm_without_shift",
            "a norm is counted with one vector: it has a scale and a shift",
            lambda d, h: attention_size(d) + feed_forward_size(d, h) + 2 * d,
            lambda d, h: 2 * attention_size(d) + feed_forward_size(d, h) + 3 * d,
        ),
        both_are(
            "norm_of_two_numbers",
            "a norm is counted with two numbers: it has a scale and a shift for every "
            "feature",
            lambda d, h: attention_size(d) + feed_forward_size(d, h) + 4,
            lambda d, h: 2 * attention_size(d) + feed_forward_size(d, h) + 6,
        ),
        both_are(
            "one_norm_too_many",
            "one norm too many is counted in each block: every layer has one, and the "
            "block has none of its own",
            lambda d, h: count(d, h)[0] + 2 * d,
            lambda d, h: count(d, h)[1] + 2 * d,
        ),
        both_are(
            "cross_of_two_matrices",
            "the decoder has two matrices too few: both of its attentions have four "
            "projections, whatever they read",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - 2 * (d * d + d),
        ),
        both_are(
            "two_matrices_missing",
            "the decoder has two matrices too few, and the vectors are right: both of "
            "its attentions have four projections, whatever they read",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - 2 * d * d,
        ),
        both_are(
            "no_output_matrix",
            "attention is counted with three matrices: W_O makes four",
            lambda d, h: count(d, h)[0] - d * d - d,
            lambda d, h: count(d, h)[1] - 2 * (d * d + d),
        ),
        both_are(
            "hidden_bias_missing",
            "the wide layer of the feed-forward part is counted without its bias, "
            "which has d_hidden numbers",
            lambda d, h: count(d, h)[0] - h,
            lambda d, h: count(d, h)[1] - h,
        ),
        both_are(
            "hidden_bias_too_narrow",
            "both biases of the feed-forward part are counted with d_model numbers: "
            "that of the wide layer has d_hidden",
            lambda d, h: count(d, h)[0] - h + d,
            lambda d, h: count(d, h)[1] - h + d,
        ),
        both_are(
            "cross_has_no_matrices",
            "the decoder's second attention is counted with its norm alone: it has "
            "four projections of its own",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - attention_size(d),
        ),
        both_are(
            "blocks_alike",
            "both blocks are given the same number: the decoder's has a second "
            "attention, with its norm",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[0],
        ),
        both_are(
            "cross_without_norm",
            "the second attention of the decoder is counted without the norm that "
            "belongs to it",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] - 2 * d,
        ),
        both_are(
            "two_feed_forwards",
            "the decoder is given two feed-forward layers: it has one, at the end",
            lambda d, h: count(d, h)[0],
            lambda d, h: count(d, h)[1] + feed_forward_size(d, h),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def parameters(block):
    return sum(p.numel() for p in block.parameters())


def built(d_model, d_hidden):
    """Count what PyTorch has really made."""
    kinds = (EncoderBlock, DecoderBlock)
    return tuple(parameters(kind(d_model, 1, d_hidden)) for kind in kinds)


def off_by(encoder, decoder):
    def answer(d_model, d_hidden):
        first, second = built(d_model, d_hidden)
        return first + encoder(d_model, d_hidden), second + decoder(d_model, d_hidden)

    return answer


RIGHT = [built]
WRONG = [
    ("one_bias_for_attention", off_by(lambda d, h: -3 * d, lambda d, h: -6 * d)),
    (
        "one_matrix_for_thinking",
        off_by(lambda d, h: -d * (h + 1), lambda d, h: -d * (h + 1)),
    ),
    ("output_bias_too_wide", off_by(lambda d, h: h - d, lambda d, h: h - d)),
    ("hidden_is_four_times", lambda d, h: built(d, 4 * d)),
    ("cross_without_output", off_by(lambda d, h: 0, lambda d, h: -d * (d + 1))),
    ("twice_the_encoder", lambda d, h: (built(d, h)[0], 2 * built(d, h)[0])),
    ("no_biases", off_by(lambda d, h: -(5 * d + h), lambda d, h: -(9 * d + h))),
    (
        "attention_biases_missing",
        off_by(lambda d, h: -4 * d, lambda d, h: -8 * d),
    ),
    (
        "attention_complete_alone",
        off_by(lambda d, h: -5 * d - h, lambda d, h: -7 * d - h),
    ),
    ("one_norm_a_block", off_by(lambda d, h: -2 * d, lambda d, h: -4 * d)),
    ("matrices_alone", off_by(lambda d, h: -(9 * d + h), lambda d, h: -(15 * d + h))),
    ("hidden_bias_missing", off_by(lambda d, h: -h, lambda d, h: -h)),
    ("hidden_bias_too_narrow", off_by(lambda d, h: d - h, lambda d, h: d - h)),
    ("cross_has_no_matrices", off_by(lambda d, h: 0, lambda d, h: -4 * d * (d + 1))),
    ("no_norms", off_by(lambda d, h: -4 * d, lambda d, h: -6 * d)),
    ("norm_without_shift", off_by(lambda d, h: -2 * d, lambda d, h: -3 * d)),
    (
        "no_output_matrix",
        off_by(lambda d, h: -d * (d + 1), lambda d, h: -2 * d * (d + 1)),
    ),
    (
        "norm_of_two_numbers",
        off_by(lambda d, h: 4 - 4 * d, lambda d, h: 6 - 6 * d),
    ),
    ("one_norm_too_many", off_by(lambda d, h: 2 * d, lambda d, h: 2 * d)),
    ("cross_of_two_matrices", off_by(lambda d, h: 0, lambda d, h: -2 * d * (d + 1))),
    ("two_matrices_missing", off_by(lambda d, h: 0, lambda d, h: -2 * d**2)),
    ("blocks_alike", lambda d, h: 2 * built(d, h)[:1]),
    ("cross_without_norm", off_by(lambda d, h: 0, lambda d, h: -2 * d)),
    ("two_feed_forwards", off_by(lambda d, h: 0, lambda d, h: 2 * d * h + d + h)),
]
