"""What every table of right and wrong answers claims, for all seeds that are tried."""

from __future__ import annotations

from course_utils.checks import PUBLIC_SEED, verdict

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, f"{result.misconception}: {result.hint}"
        assert result.points < result.max_points
