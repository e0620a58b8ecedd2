"""`extrapolate`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def line(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and start of the least-squares line."""
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return slope, y.mean() - slope * x.mean()


def fitted(n: Tensor, loss: Tensor, floor: float, larger: float, back: float) -> tuple:
    slope, start = line(n.log(), (loss - floor).log())
    reached = torch.exp(start + slope * torch.tensor(larger).log())
    return -slope, back + reached


def extrapolate(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    return fitted(n, loss, floor, larger, floor)


def straight(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    slope, start = line(n, loss)
    return -slope, start + slope * larger


def half_logarithmic(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    slope, start = line(n.log(), loss - floor)
    return -slope, floor + start + slope * torch.tensor(larger).log()


def negative(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    alpha, reached = extrapolate(n, loss, floor, larger)
    return -alpha, reached


def two_ends(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    ends = torch.tensor([0, len(n) - 1])
    return extrapolate(n[ends], loss[ends], floor, larger)


def axes_exchanged(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    slope, start = line((loss - floor).log(), n.log())
    reached = torch.exp((torch.tensor(larger).log() - start) / slope)
    return -1 / slope, floor + reached


def through_the_origin(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    x, y = n.log(), (loss - floor).log()
    slope = (x * y).sum() / (x * x).sum()
    return -slope, floor + torch.exp(slope * torch.tensor(larger).log())


def two_logarithms(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    slope, start = line(n.log10(), (loss - floor).log10())
    return -slope, floor + torch.exp(start + slope * torch.tensor(larger).log10())


def still_a_logarithm(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    alpha, reached = extrapolate(n, loss, floor, larger)
    return alpha, (reached - floor).log()


def from_the_last_point(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    alpha, _ = extrapolate(n, loss, floor, larger)
    return alpha, floor + (loss[-1] - floor) * (larger / n[-1]) ** -alpha


def mean_of_slopes(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    alpha = -((loss - floor).log().diff() / n.log().diff()).mean()
    return alpha, extrapolate(n, loss, floor, larger)[1]


def the_start(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    _, start = line(n.log(), (loss - floor).log())
    return start, extrapolate(n, loss, floor, larger)[1]


def factor_added(n: Tensor, loss: Tensor, floor: float, larger: float) -> tuple:
    slope, start = line(n.log(), (loss - floor).log())
    return -slope, floor + start.exp() + torch.tensor(larger) ** slope


def tensors(args: Args) -> tuple:
    return torch.as_tensor(args[0]), torch.as_tensor(args[1]), *args[2:]


def draw(rng: np.random.Generator) -> Args:
    n = 2.0 ** np.sort(rng.choice(np.arange(3, 12), size=5, replace=False))
    alpha, floor = rng.uniform(0.2, 0.6), rng.uniform(0.5, 1.5)
    loss = floor + 4 * n**-alpha * np.exp(0.03 * rng.standard_normal(5))
    sizes = n.astype(np.float32), loss.astype(np.float32)
    return *sizes, float(floor), float(2 * n[-1])


def cases(rng: np.random.Generator) -> list[Args]:
    return [draw(rng) for _ in range(3)]


QUESTION = Question(
    id="19.4",
    title="Fit an exponent and extrapolate",
    answer="extrapolate",
    arguments=("n", "loss", "floor", "larger"),
    outputs=(Output("alpha"), Output("prediction")),
    reference=extrapolate,
    difficulty="medium",
    minutes=12,
    tolerance=1e-3,
    next_step="take away the floor; what is then a straight line, on which axes?",
    parts=(
        Part("the exponent", 2, cases, view=first),
        Part("the prediction", 2, cases, view=second),
    ),
    mistakes=(
        Mistake(
            "axes_exchanged",
            "the line gives log n from log (loss - floor): least squares then measure"
            " the errors of n; the loss is what varies",
            axes_exchanged,
        ),
        Mistake(
            "through_the_origin",
            "the line goes through the origin: it has a start as well as a slope",
            through_the_origin,
        ),
        Mistake(
            "two_logarithms",
            "the line was fitted with `log10` and read with `exp`: take one base for "
            "both ways",
            two_logarithms,
        ),
        Mistake(
            "still_a_logarithm",
            "the prediction is the logarithm of loss - floor: take its exponential, "
            "and add the floor",
            still_a_logarithm,
        ),
        Mistake(
            "floor_forgotten",
            "the floor was not taken away before the logarithm: only loss - floor is a "
            "straight line on logarithmic axes",
            lambda n, loss, floor, larger: fitted(n, loss, 0.0, larger, 0.0),
        ),
        Mistake(
            "floor_not_added",
            "the exponent is right, but the prediction lacks the floor: add what you "
            "took away",
            lambda n, loss, floor, larger: fitted(n, loss, floor, larger, 0.0),
        ),
        Mistake(
            "straight",
            "the line was fitted without logarithms: a power law is straight in log n "
            "and log (loss - floor)",
            straight,
        ),
        Mistake(
            "half_logarithmic",
            "only n has a logarithm: take that of loss - floor as well",
            half_logarithmic,
        ),
        Mistake(
            "negative",
            "this is the slope: the loss falls, so alpha is minus the slope",
            negative,
        ),
        Mistake(
            "from_the_last_point",
            "the prediction starts from the last point: the noise in it stays; the "
            "line starts where the fit puts it",
            from_the_last_point,
        ),
        Mistake(
            "mean_of_slopes",
            "this is the mean of the slopes from point to point: it has more noise "
            "than one line by least squares through all of them",
            mean_of_slopes,
        ),
        Mistake(
            "the_start",
            "this is the start of the line, its value at log n = 0: the exponent is in "
            "the slope",
            the_start,
            lambda args, value: any(
                np.isclose(
                    sign * float(value[0]),
                    the_start(*tensors(args))[0],
                    1e-3,
                    equal_nan=True,
                )
                for sign in (1, -1)
            ),
        ),
        Mistake(
            "factor_added",
            "the two parts of the line are added after the exponential: a sum of "
            "logarithms is a product, u times N to the power of -alpha",
            factor_added,
        ),
        Mistake(
            "two_ends",
            "the line goes through the first and the last point alone: fit all of "
            "them by least squares",
            two_ends,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_polyfit(x_of, y_of, back, sign=-1, pick=slice(None)):
    def answer(n, loss, floor, larger):
        x, y = (np.asarray(v, np.float64)[pick] for v in (n, loss))
        slope, start = np.polyfit(x_of(x), y_of(y, floor), 1)
        return float(sign * slope), float(back(start + slope * x_of(larger), floor))

    return answer


def above(y, floor):
    return np.log(y - floor)


def whole(value, floor):
    return floor + np.exp(value)


def logs(args):
    n, loss = (np.asarray(x, np.float64) for x in args[:2])
    return np.log(n), np.log(loss - args[2])


def fit_of(args):
    return by_polyfit(np.log, above, whole)(*args)


def starting(sign):
    def answer(*args):
        x, y = logs(args)
        _, start = np.polyfit(x, y, 1)
        return sign * start, fit_of(args)[1]

    return answer


RIGHT = [by_polyfit(np.log, above, whole)]
WRONG = [
    ("the_start", starting(1)),
    ("the_start", starting(-1)),
    (
        "mean_of_slopes",
        lambda *a: (
            float(-(np.diff(logs(a)[1]) / np.diff(logs(a)[0])).mean()),
            fit_of(a)[1],
        ),
    ),
    (
        "from_the_last_point",
        lambda *a: (
            fit_of(a)[0],
            a[2] + (float(a[1][-1]) - a[2]) * (a[3] / float(a[0][-1])) ** -fit_of(a)[0],
        ),
    ),
    (
        "two_logarithms",
        by_polyfit(np.log10, lambda y, floor: np.log10(y - floor), whole),
    ),
    ("still_a_logarithm", by_polyfit(np.log, above, lambda v, floor: v)),
    (
        "floor_forgotten",
        by_polyfit(np.log, lambda y, floor: np.log(y), lambda v, floor: np.exp(v)),
    ),
    ("floor_not_added", by_polyfit(np.log, above, lambda v, floor: np.exp(v))),
    (
        "straight",
        by_polyfit(lambda x: x, lambda y, floor: y, lambda v, floor: v),
    ),
    (
        "half_logarithmic",
        by_polyfit(np.log, lambda y, floor: y - floor, lambda v, floor: v + floor),
    ),
    ("negative", by_polyfit(np.log, above, whole, sign=1)),
    ("two_ends", by_polyfit(np.log, above, whole, pick=[0, -1])),
]
