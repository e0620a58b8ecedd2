"""`another_pair`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def another_pair(w_q: Tensor, w_k: Tensor) -> tuple[Tensor, Tensor]:
    basis, rest = torch.linalg.qr(w_q)
    return basis, w_k @ rest.T


def draw_pair(rng: np.random.Generator) -> Args:
    d_model, d_k = sorted(sizes(rng, 2), reverse=True)
    return normal(rng, d_model, d_k), normal(rng, d_model, d_k)


def close(left: np.ndarray, right: np.ndarray) -> bool:
    return np.allclose(left, right, atol=1e-3)


def same_scores(args: Args, value: Any) -> bool:
    """The new pair has the old product, up to what rounding leaves."""
    w_q, w_k, new_q, new_k = (np.asarray(x, np.float64) for x in (*args, *value))
    product = w_q @ w_k.T
    return bool(np.abs(new_q @ new_k.T - product).max() < 1e-3 * np.abs(product).max())


def both_differ(args: Args, value: Any) -> bool:
    return all(np.abs(new - old).max() > 1e-2 for old, new in zip(args, value))


def gram(w: np.ndarray) -> np.ndarray:
    """All dot products of the columns."""
    return np.asarray(w.T @ w, np.float64)


def is_orthonormal(w: np.ndarray) -> bool:
    return close(gram(np.asarray(w, np.float64)), np.eye(w.shape[1]))


def is_in_standard_form(args: Args, value: Any) -> bool:
    return same_scores(args, value) and is_orthonormal(value[0])


def unit_columns(args: Args, value: Any) -> bool:
    """Each column has length one, but they are not at right angles."""
    lengths = np.diag(gram(value[0]))
    return np.allclose(lengths, 1, atol=1e-3) and not is_orthonormal(value[0])


def mixes(args: Args, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find the matrices that made the new pair from the old: W' = W M."""
    found = tuple(
        np.linalg.lstsq(np.asarray(old, np.float64), np.asarray(new, np.float64), None)
        for old, new in zip(args, value)
    )
    return found[0][0], found[1][0]


def made_from(args: Args, value: Any) -> list[bool]:
    """Tell of each new matrix whether it is the old one times something, W' = W M."""
    return [
        np.allclose(old @ mix, new, atol=1e-3)
        for old, mix, new in zip(args, mixes(args, value), value)
    ]


def mixed_by(relation: Any) -> Any:
    """Recognise a pair whose two mixing matrices stand in some wrong relation."""
    return lambda args, value: (
        all(made_from(args, value))
        and both_differ(args, value)
        and not same_scores(args, value)
        and bool(relation(*mixes(args, value)))
    )


def stretches(mix: np.ndarray) -> np.ndarray:
    """The singular values of a mixing matrix."""
    return np.asarray(np.linalg.svd(mix, compute_uv=False))


def turned(q: np.ndarray, k: np.ndarray) -> bool:
    """The keys are stretched as they should be, in other directions."""
    due = stretches(np.linalg.inv(q))
    return np.allclose(stretches(k), due, atol=1e-2 * float(due[0]))


QUESTION = Question(
    id="06.6",
    title="Another pair with the same scores",
    answer="another_pair",
    arguments=("w_q", "w_k"),
    outputs=(Output("new_w_q", "d_model d_k"), Output("new_w_k", "d_model d_k")),
    reference=another_pair,
    difficulty="medium",
    minutes=12,
    next_step="find a matrix that makes the columns of W_Q orthonormal, then undo it "
    "in W_K.",
    parts=(
        Part(
            "the same scores",
            1,
            lambda rng: [draw_pair(rng) for _ in range(2)],
            accepts=lambda args, value: (
                same_scores(args, value) and not close(args[0], value[0])
            ),
        ),
        Part(
            "orthonormal columns",
            1,
            lambda rng: [draw_pair(rng) for _ in range(3)],
            accepts=is_in_standard_form,
            only_failure_hint="another pair with the same scores, but the columns of "
            "the new W_Q are not orthonormal: compare `new_w_q.T @ new_w_q` with the "
            "identity",
        ),
    ),
    mistakes=(
        Mistake(
            "same_pair",
            "this is the same pair again: the columns of W_Q are as they were",
            lambda w_q, w_k: (w_q.clone(), w_k.clone()),
            lambda args, value: all(close(a, b) for a, b in zip(args, value)),
        ),
        Mistake(
            "keys_unchanged",
            "W_Q has its new columns, W_K is the old one, so the product has changed: "
            "what is taken out of one must be put into the other",
            lambda w_q, w_k: (torch.linalg.qr(w_q)[0], w_k.clone()),
            lambda args, value: (
                close(args[1], value[1]) and not close(args[0], value[0])
            ),
        ),
        Mistake(
            "both_orthonormal",
            "both matrices got orthonormal columns: then nothing is left that holds "
            "the sizes of the scores; only one of the two can be freed of them",
            lambda w_q, w_k: (torch.linalg.qr(w_q)[0], torch.linalg.qr(w_k)[0]),
            lambda args, value: all(is_orthonormal(x) for x in value),
        ),
        Mistake(
            "keys_orthonormal",
            "it is W_K whose columns are orthonormal now; asked for are those of W_Q",
            lambda w_q, w_k: another_pair(w_k, w_q)[::-1],
            lambda args, value: is_orthonormal(value[1]) and same_scores(args, value),
        ),
        Mistake(
            "exchanged",
            "queries and keys have changed places: that transposes the scores, and "
            "“i looks at j” is not “j looks at i”",
            lambda w_q, w_k: another_pair(w_k, w_q),
            lambda args, value: same_scores(args, value[::-1]),
        ),
        Mistake(
            "not_transposed",
            "what was taken out of W_Q stands in W_K the wrong way round: in "
            "W_Q M (W_K N)ᵀ the second matrix appears transposed",
            lambda w_q, w_k: (
                torch.linalg.qr(w_q)[0],
                w_k @ torch.linalg.qr(w_q)[1],
            ),
            mixed_by(lambda q, k: close(q @ k, np.eye(len(q))) and not close(k.T, k)),
        ),
        Mistake(
            "inverse_in_the_keys",
            "W_K is multiplied by the same matrix as W_Q, so that it stands in the "
            "product twice: the second must undo the first",
            lambda w_q, w_k: (
                torch.linalg.qr(w_q)[0],
                w_k @ torch.linalg.inv(torch.linalg.qr(w_q)[1]),
            ),
            mixed_by(close),
        ),
        Mistake(
            "inverse_transposed_in_the_keys",
            "the keys undo nothing: with W_Q M the product needs W_K times the "
            "transposed inverse of M, and yours is the transpose of M itself",
            lambda w_q, w_k: (
                torch.linalg.qr(w_q)[0],
                w_k @ torch.linalg.inv(torch.linalg.qr(w_q)[1]).T,
            ),
            mixed_by(lambda q, k: close(q, k.T)),
        ),
        Mistake(
            "sizes_lost",
            "W_Q has orthonormal columns, but its old sizes are nowhere: what "
            "multiplied its directions must now stand in W_K",
            lambda w_q, w_k: (by_svd(w_q, w_k)[0], w_k @ torch.linalg.svd(w_q)[2].T),
            lambda args, value: (
                is_orthonormal(value[0])
                and all(made_from(args, value))
                and close(gram(mixes(args, value)[1]), np.eye(args[1].shape[1]))
            ),
        ),
        Mistake(
            "keys_turned",
            "what was taken out of W_Q comes back in W_K with the right sizes, in the "
            "wrong directions: some matrix is missing, transposed, or on the wrong "
            "side",
            lambda w_q, w_k: (
                by_svd(w_q, w_k)[0],
                w_k @ torch.linalg.svd(w_q)[2] * torch.linalg.svdvals(w_q),
            ),
            mixed_by(turned),
        ),
        Mistake(
            "unit_columns",
            "the columns have length one, but they are not at right angles to each "
            "other: dividing each by its length is not enough",
            lambda w_q, w_k: (
                w_q / w_q.norm(dim=0),
                w_k * w_q.norm(dim=0),
            ),
            unit_columns,
        ),
        Mistake(
            "unit_rows",
            "the rows of W_Q were made one long: a row belongs to a feature of the "
            "token, and dividing it by its length changes the scores",
            lambda w_q, w_k: (w_q / w_q.norm(dim=1, keepdim=True), w_k.clone()),
            lambda args, value: np.allclose(
                np.linalg.norm(value[0], axis=1), 1, atol=1e-3
            ),
        ),
        Mistake(
            "not_from_the_right",
            "the new W_Q is not the old one times something (W M): only what stands "
            "between W_Q and W_Kᵀ can cancel, and that is on the right of both",
            lambda w_q, w_k: (w_q.flip(0), w_k.flip(0)),
            lambda args, value: (
                both_differ(args, value) and not made_from(args, value)[0]
            ),
        ),
        Mistake(
            "does_not_cancel",
            "your pair is W_Q M and W_K N, but M Nᵀ is not the identity, so the "
            "scores have changed: work out which N cancels your M",
            lambda w_q, w_k: (torch.linalg.qr(w_q)[0], w_k * w_q.norm(dim=0)),
            mixed_by(lambda q, k: True),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def turn(n):
    """A matrix that is no multiple of the identity, and not symmetric."""
    return torch.eye(n) + torch.triu(torch.ones(n, n), 1)


def by_svd(w_q, w_k):
    u, s, vh = torch.linalg.svd(w_q, full_matrices=False)
    return u, w_k @ vh.T * s


def svd_in_another_order(w_q, w_k, put_back):
    u, s, vh = torch.linalg.svd(w_q, full_matrices=False)
    return u, put_back(w_k, s, vh)


def by_gram(w_q, w_k):
    """The symmetric root of the Gram matrix, in double precision and NumPy."""
    q, k = w_q.double().numpy(), w_k.double().numpy()
    sizes, directions = np.linalg.eigh(q.T @ q)
    root = directions * np.sqrt(sizes) @ directions.T
    return np.linalg.solve(root, q.T).T, k @ root


def by_gram_schmidt(w_q, w_k):
    columns: list[Tensor] = []
    for column in w_q.T:
        for done in columns:
            column = column - (column @ done) * done
        columns.append(column / column.norm())
    new_q = torch.stack(columns, dim=1)
    return new_q, w_k @ (new_q.T @ w_q).T


RIGHT = [by_svd, by_gram, by_gram_schmidt]
WRONG = [
    ("same_pair", lambda w_q, w_k: (w_q @ torch.eye(w_q.shape[1]), w_k)),
    ("keys_unchanged", lambda w_q, w_k: (by_svd(w_q, w_k)[0], w_k * 1)),
    ("both_orthonormal", lambda q, k: (by_svd(q, k)[0], by_svd(k, q)[0])),
    ("keys_orthonormal", lambda q, k: by_gram_schmidt(k, q)[::-1]),
    ("exchanged", lambda w_q, w_k: (w_k * 1, w_q * 1)),
    (
        "inverse_in_the_keys",
        lambda w_q, w_k: (w_q @ turn(w_q.shape[1]), w_k @ turn(w_q.shape[1])),
    ),
    (
        "not_transposed",
        lambda w_q, w_k: (
            torch.linalg.solve(turn(w_q.shape[1]).T, w_q.T).T,
            w_k @ turn(w_q.shape[1]),
        ),
    ),
    ("keys_turned", lambda q, k: svd_in_another_order(q, k, lambda k, s, v: k * s)),
    (
        "keys_turned",
        lambda q, k: svd_in_another_order(q, k, lambda k, s, v: k * s @ v.T),
    ),
    (
        "keys_turned",
        lambda q, k: svd_in_another_order(q, k, lambda k, s, v: k @ v.T * s @ v),
    ),
    ("does_not_cancel", lambda q, k: (torch.linalg.qr(q)[0], 3 * k @ q.T @ q)),
    ("unit_columns", lambda q, k: (F.normalize(q, dim=0), k * q.pow(2).sum(0).sqrt())),
    ("not_from_the_right", lambda w_q, w_k: (w_q + 1, w_k - 1)),
]
PARTIAL = [(1, lambda w_q, w_k: (2 * w_q, w_k / 2)), (1, lambda q, k: (-q, -k))]
