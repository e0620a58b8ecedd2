"""`gradient_through_time`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def gradient_through_time(weight: float, states: Tensor) -> Tensor:
    gradient = torch.ones(())
    found = [gradient]
    for state in reversed(states[1:]):
        gradient = gradient * weight * (1 - state**2)
        found.append(gradient)
    return torch.stack(found[::-1])


def by_factors(factors: Tensor) -> Tensor:
    """Multiply the factors of steps 2 … T from the back; the last entry is 1."""
    ones = torch.ones(1)
    return torch.cat([factors.flip(0).cumprod(0).flip(0), ones])


def draw_chain(rng: np.random.Generator, size: float) -> list[Args]:
    cases = []
    for sign in (1, -1):
        token = int(rng.integers(4, 9))
        states = np.tanh(0.6 * normal(rng, token))
        weight = sign * (size + 0.1 * float(rng.random()))
        cases.append((weight, states.astype(np.float32)))
    return cases


QUESTION = Question(
    id="02.4",
    title="The gradient through time",
    answer="gradient_through_time",
    arguments=("weight", "states"),
    outputs=(Output("gradients", "token"),),
    reference=gradient_through_time,
    difficulty="hard",
    minutes=15,
    next_step="how does h_t move with h_(t−1)? Then multiply such factors, last first.",
    parts=(
        Part("the last step", 1, lambda rng: draw_chain(rng, 0.6), lambda v: v[-2:]),
        Part("a gradient that vanishes", 1, lambda rng: draw_chain(rng, 0.6)),
        Part("a gradient that may grow", 1, lambda rng: draw_chain(rng, 1.6)),
    ),
    mistakes=(
        Mistake(
            "tanh_forgotten",
            "these are powers of the weight alone: every step also passes through "
            "tanh, which has a slope of its own",
            lambda w, h: by_factors(torch.full((len(h) - 1,), w)),
        ),
        Mistake(
            "slope_not_squared",
            "the slope of tanh is taken as 1 − h; differentiate tanh once more, the "
            "result contains h another way",
            lambda w, h: by_factors(w * (1 - h[1:])),
        ),
        Mistake(
            "tanh_of_the_state",
            "the slope is computed from tanh(h): the states have been through tanh "
            "already, so that h itself is the tanh",
            lambda w, h: by_factors(w * (1 - torch.tanh(h[1:]) ** 2)),
        ),
        Mistake(
            "weight_forgotten",
            "only the slopes of tanh are multiplied: the state is also multiplied by "
            "the weight in every step",
            lambda w, h: by_factors(1 - h[1:] ** 2),
        ),
        Mistake(
            "slope_at_the_start",
            "each factor uses the state before the step; tanh has made the state after "
            "it, and its slope is read off there",
            lambda w, h: by_factors(w * (1 - h[:-1] ** 2)),
        ),
        Mistake(
            "one_factor_too_many",
            "one factor too many everywhere: the last state moves with itself one to "
            "one, without any step between",
            lambda w, h: by_factors(w * (1 - h**2))[:-1],
        ),
        Mistake(
            "forwards",
            "the products run from the first step on: these are the gradients of each "
            "state with respect to the first, not of the last with respect to each",
            lambda w, h: torch.cat(
                [torch.ones(1), (w * (1 - h[1:] ** 2)).cumprod(dim=0)]
            ),
        ),
        Mistake(
            "one_step_only",
            "each entry holds one step's factor: between an early state and the last "
            "lie all the steps, and the chain rule multiplies them",
            lambda w, h: torch.cat([w * (1 - h[1:] ** 2), torch.ones(1)]),
        ),
        Mistake(
            "last_first",
            "the gradients come in the reverse order: entry t belongs to state t, so "
            "that the one of the last state stands last",
            lambda w, h: gradient_through_time(w, h).flip(0),
        ),
        Mistake(
            "forwards_from_the_first_state",
            "the products run from the first state on, and begin with its own slope: "
            "the last state is reached from each state by the steps *after* it",
            lambda w, h: (w * (1 - h**2)).cumprod(dim=0),
        ),
        Mistake(
            "slope_of_the_size",
            "the slope is taken as 1 − |h|: near 0 tanh is steeper than that; write "
            "its derivative by tanh itself",
            lambda w, h: by_factors(w * (1 - h[1:].abs())),
        ),
        Mistake(
            "slope_too_large",
            "the slope is 1 plus a square, more than 1: tanh is never steeper than a "
            "line of slope 1; check the sign in its derivative",
            lambda w, h: by_factors(w * (1 + h[1:] ** 2)),
        ),
        Mistake(
            "state_for_slope",
            "the states stand where slopes belong: a state is a value of tanh, its "
            "slope there is made of it",
            lambda w, h: by_factors(w * h[1:]),
        ),
        Mistake(
            "one_slope_for_all",
            "all steps have the slope of one state, raised to a power: every step has "
            "a slope of its own",
            lambda w, h: (w * (1 - h**2)) ** torch.arange(len(h)).flip(0),
        ),
        Mistake(
            "last_slope_for_all",
            "all steps have the slope of the last state, raised to a power: every step "
            "has a slope of its own",
            lambda w, h: (w * (1 - h[-1] ** 2)) ** torch.arange(len(h)).flip(0),
        ),
        Mistake(
            "one_slope_of_many",
            "each entry has one slope and a power of the weight: every step on the way "
            "multiplies by its own slope as well",
            lambda w, h: w ** torch.arange(len(h)).flip(0) * (1 - h**2),
        ),
        Mistake(
            "weight_once",
            "the slopes are multiplied, the weight enters once: every step multiplies "
            "by it again",
            lambda w, h: torch.cat(
                [w * by_factors(1 - h[1:] ** 2)[:-1], torch.ones(1)]
            ),
        ),
        Mistake(
            "sign_of_the_weight",
            "the sign of the weight is lost: a negative weight turns the gradient "
            "round in every step",
            lambda w, h: by_factors(abs(w) * (1 - h[1:] ** 2)),
        ),
        Mistake(
            "last_step_missing",
            "the last step is left out of every product: h_n is made by a step too, "
            "with a slope of its own",
            lambda w, h: torch.cat([by_factors(w * (1 - h[1:-1] ** 2)), torch.ones(1)]),
        ),
        Mistake(
            "first_step_missing",
            "the first step of every product is missing: from h_t on, the next step "
            "already has a factor",
            lambda w, h: torch.cat([by_factors(w * (1 - h[2:] ** 2)), torch.ones(1)]),
        ),
        Mistake(
            "added_up",
            "the factors are added up: steps that follow each other multiply (the "
            "chain rule)",
            lambda w, h: torch.cat(
                [(w * (1 - h[1:] ** 2)).flip(0).cumsum(0).flip(0), torch.ones(1)]
            ),
        ),
        Mistake(
            "products_from_the_start",
            "the products run from the first step on, with the 1 at the end: the last "
            "state is reached from h_t by the steps *after* t",
            lambda w, h: torch.cat([(w * (1 - h[1:] ** 2)).cumprod(0), torch.ones(1)]),
        ),
        Mistake(
            "not_turned_back",
            "the products are made from the back and stay in that order: entry t "
            "belongs to state t, so turn them round again",
            lambda w, h: torch.cat(
                [(w * (1 - h[1:] ** 2)).flip(0).cumprod(0), torch.ones(1)]
            ),
        ),
        Mistake(
            "one_at_the_front",
            "the 1 stands at the front: it is the last state that moves with itself "
            "one to one",
            lambda w, h: by_factors(w * (1 - h[1:] ** 2)).roll(1),
        ),
        Mistake(
            "last_is_zero",
            "the last entry is 0, as if the last state did not move with itself: "
            "change it, and it changes by just as much",
            lambda w, h: (
                gradient_through_time(w, h) * (torch.arange(len(h)) + 1 < len(h))
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def differentiated(weight, states):
    """Rebuild the network from its states, and let autograd take the gradients."""
    before = torch.cat([torch.zeros(1), states[:-1]])
    inputs = torch.atanh(states.double()) - weight * before.double()
    state, kept = torch.zeros((), dtype=torch.float64), []
    for x in inputs:
        state = torch.tanh(weight * state + x).requires_grad_()
        kept.append(state)
    return torch.stack(torch.autograd.grad(state, kept)).float()


def products(factor):
    def answer(weight, states):
        w, h = weight, states.tolist()
        steps = range(len(h))
        return torch.tensor(
            [
                math.prod(factor(w, h[j - 1], h[j]) for j in steps[t + 1 :])
                for t in steps
            ]
        )

    return answer


RIGHT = [differentiated, products(lambda w, before, after: w * (1 - after**2))]
WRONG = [
    ("tanh_forgotten", products(lambda w, before, after: w)),
    ("weight_forgotten", products(lambda w, before, after: 1 - after**2)),
    ("slope_not_squared", products(lambda w, before, after: w * (1 - after))),
    ("slope_of_the_size", products(lambda w, before, after: w * (1 - abs(after)))),
    ("sign_of_the_weight", products(lambda w, b, after: abs(w) * (1 - after**2))),
    ("state_for_slope", products(lambda w, before, after: w * after)),
    ("slope_at_the_start", products(lambda w, b, after: w * (1 - b**2))),
]
NOT_IN_HINTS = {"1 - h"}
