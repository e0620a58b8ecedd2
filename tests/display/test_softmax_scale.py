"""The query that is taught by hand: what the page says of the scale is what happens."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils.display.widgets.softmax_scale import (
    RATES,
    STEPS,
    share_found,
    softmax_scale,
)

DATA = json.loads(re.search(r"const data=(.*);\n", softmax_scale().html)[1])
WIDE = [DATA["widths"].index(d_k) for d_k in (256, 1024)]
NARROW = DATA["widths"].index(4)


def test_with_the_scale_one_step_size_serves_every_width_from_16():
    at_ten = np.array(DATA["scaled"])[:, RATES.index(10)]
    assert at_ten[NARROW + 1 :].min() > 0.95


def test_without_the_scale_most_wide_draws_fail_at_every_step_size():
    assert np.array(DATA["plain"])[WIDE].max() < 0.5


def test_the_steps_on_dot_products_are_the_steps_that_autograd_takes():
    draw = np.random.default_rng(1).standard_normal
    queries, keys = draw((20, 16, 1)), draw((20, 5, 16))
    found = share_found((keys @ queries)[..., 0], keys @ keys.swapaxes(1, 2), 0.25, 3.0)
    query, others = torch.tensor(queries, requires_grad=True), torch.tensor(keys)
    for _ in range(STEPS):
        weights = torch.softmax(0.25 * (others @ query)[..., 0], dim=-1)
        loss = (1 - weights[:, 0]).square().sum() / 2
        (gradient,) = torch.autograd.grad(loss, query)
        query = (query - 3 * gradient).detach().requires_grad_()
    weights = torch.softmax(0.25 * (others @ query)[..., 0], dim=-1)
    assert 0 < found < 1
    assert found == (weights[:, 0] > 0.9).double().mean()


@pytest.mark.browser
def test_the_page_takes_the_same_steps(tmp_path: Path):
    """The drawing's own simulation ends where the one in Python would."""
    from playwright.sync_api import sync_playwright

    (tmp_path / "page.html").write_text(f"<body>{softmax_scale().html}</body>", "utf-8")
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page()
        page.goto((tmp_path / "page.html").as_uri())
        page.locator("[data-control=steps]").fill(str(STEPS))
        plain = page.locator(".cw-says").inner_text()
        page.locator("[data-control=scaled]").check()
        scaled = page.locator(".cw-says").inner_text()
        browser.close()
    weight = r"wanted key has weight ([\d.]+)"
    assert float(re.search(weight, plain)[1]) < 0.1
    assert float(re.search(weight, scaled)[1]) > 0.9
