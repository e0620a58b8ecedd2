"""Scaling laws: what made the points is found again, and the best size is the best."""

from __future__ import annotations

import numpy as np
import pytest

from course_utils.evaluation.scaling import (
    ScalingLaw,
    fit_power_law,
    fit_scaling_law,
)

LAW = ScalingLaw(1.2, 20.0, 0.4, 300.0, 0.5)
N = np.repeat([2e3, 7e3, 25e3, 1e5], 3)
D = np.tile([2.5e5, 1e6, 4e6], 4)


def test_the_joint_fit_finds_the_law_that_made_the_points():
    found = fit_scaling_law(N, D, [LAW(n, d) for n, d in zip(N, D)])
    np.testing.assert_allclose(found, LAW, rtol=1e-4)


def test_a_power_law_is_found_with_and_without_a_floor():
    n = np.array([10.0, 40.0, 160.0, 640.0])
    with_floor, pure = fit_power_law(n, 1 + 3 * n**-0.5), 3 * n**-0.5
    np.testing.assert_allclose(with_floor, (1, 3, 0.5), rtol=1e-4)
    np.testing.assert_allclose(fit_power_law(n, pure, False), (0, 3, 0.5), atol=1e-9)
    assert abs(fit_power_law(n, 1 + 3 * n**-0.5, False).alpha - 0.5) > 0.1


def test_a_floor_is_never_negative():
    n = np.array([10.0, 20.0, 40.0, 80.0])
    assert fit_power_law(n, 5 - np.log(n)).floor >= 0


def test_the_best_size_has_the_lowest_loss_at_its_operations():
    operations = 1e12
    sizes = np.geomspace(1e3, 1e7, 4001)
    losses = [LAW(n, operations / 6 / n) for n in sizes]
    assert LAW.best_size(operations) == pytest.approx(sizes[np.argmin(losses)], 0.01)


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="expected one length"):
        fit_power_law([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="expected 3 or more"):
        fit_power_law([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="expected numbers above 0"):
        fit_power_law([1.0, 2.0, 3.0], [1.0, 0.0, 2.0])
