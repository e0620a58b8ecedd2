"""The network that learns in the page: its gradients and its curve beside PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from lab_server import running_browser

from course_utils.display.widgets.training_cards import javascript, training_cards
from course_utils.models.attention import (
    attention,
    causal_mask,
    merge_heads,
    split_heads,
)

pytestmark = pytest.mark.browser
PLAIN = {"heads": 2, "scaled": True, "positions": True, "causal": False}
SWITCHES = [
    PLAIN,
    PLAIN | {"heads": 1},
    PLAIN | {"heads": 4, "causal": True},
    PLAIN | {"scaled": False},
    PLAIN | {"positions": False},
]
NUMBERS = """
const numbers = (tensors, what) => Object.fromEntries(Object.entries(tensors).map(
  ([name, tensor]) => [name, { shape: tensor.shape, values: [...tensor[what]] }]));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def run(browser: Any) -> Any:
    """Run a function body of JavaScript beside the network's code."""
    page = browser.new_page()
    page.goto("about:blank")

    def call(body: str, **given: Any) -> Any:
        code = f"({{ {', '.join(given)} }}) => {{ {javascript()}\n{NUMBERS}\n{body} }}"
        return page.evaluate(code, given)

    return call


@pytest.fixture(scope="module")
def own_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page with nothing but the interactive, from a file; its address."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    head = '<!doctype html><meta charset="utf-8"><title>training</title>'
    path.write_text(head + training_cards().html, encoding="utf-8")
    return path


def tensors_of(found: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {
        name: torch.tensor(part["values"], dtype=torch.float64).reshape(part["shape"])
        for name, part in found.items()
    }


def loss_in_pytorch(
    p: dict[str, torch.Tensor], cards: dict[str, Any], switches: dict[str, Any]
) -> torch.Tensor:
    """The same network from the course's own functions."""
    colours, letters = torch.tensor(cards["colours"]), torch.tensor(cards["letters"])
    x = p["colour"][colours] + p["letter"][letters]
    if switches["positions"]:
        x = x + p["position"]
    queries, keys, values = split_heads(
        x @ p["qkv"] + p["qkvBias"], switches["heads"], parts=3
    )
    if not switches["scaled"]:
        queries = queries * keys.shape[-1] ** 0.5
    mask = causal_mask(x.shape[1]) if switches["causal"] else None
    context, _ = attention(queries, keys, values, mask)
    mixed = merge_heads(context) @ p["output"] + p["outputBias"]
    logits = mixed @ p["readout"] + p["readoutBias"]
    return F.cross_entropy(
        logits.reshape(-1, 8), torch.tensor(cards["labels"]), ignore_index=-100
    )


@pytest.mark.parametrize("switches", SWITCHES)
def test_its_gradients_are_those_of_pytorch(run: Any, switches: dict[str, Any]) -> None:
    found = run(
        """const training = startTraining({ seed: 3, ...switches });
        const cards = drawCards(randomNumbers(7), 5);
        const weights = numbers(training.network, "data");
        const loss = training.gradients(cards);
        const gradients = numbers(training.network, "grad");
        return { cards, weights, loss, gradients };""",
        switches=switches,
    )
    parameters = tensors_of(found["weights"])
    for parameter in parameters.values():
        parameter.requires_grad_()
    loss = loss_in_pytorch(parameters, found["cards"], switches)
    loss.backward()
    assert found["loss"] == pytest.approx(loss.item(), abs=1e-10)
    for name, gradient in tensors_of(found["gradients"]).items():
        expected = parameters[name].grad
        if expected is None:  # the positions, when they are switched off
            expected = torch.zeros_like(gradient)
        torch.testing.assert_close(gradient, expected, atol=1e-10, rtol=1e-8)


def test_its_curve_of_fifty_steps_is_that_of_pytorch(run: Any) -> None:
    found = run(
        """const training = startTraining({ seed: 1, rate: 0.01, ...switches });
        const weights = numbers(training.network, "data"), random = randomNumbers(5);
        const batches = [], losses = [];
        for (let step = 0; step < 50; step++) {
          const cards = drawCards(random, 8);
          batches.push(cards);
          losses.push(training.gradients(cards));
          training.optimiser.step();
        }
        return { weights, batches, losses };""",
        switches=PLAIN,
    )
    parameters = tensors_of(found["weights"])
    optimiser = torch.optim.AdamW(
        [parameter.requires_grad_() for parameter in parameters.values()], lr=0.01
    )
    losses = []
    for cards in found["batches"]:
        loss = loss_in_pytorch(parameters, cards, PLAIN)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert found["losses"] == pytest.approx(losses, abs=1e-6)


def test_the_cards_are_those_of_chapter_10(run: Any) -> None:
    cards = run("return drawCards(randomNumbers(2), 40);")
    labels = torch.tensor(cards["labels"]).reshape(40, 12, 2)
    colours, letters = torch.tensor(cards["colours"]), torch.tensor(cards["letters"])
    assert (colours.sort(dim=1).values == torch.arange(12) // 2).all()
    assert (labels[:, 0, 0] == -100).all()
    assert torch.equal(labels[:, 1:, 0], letters[:, :-1])
    same = (colours[:, :, None] == colours[:, None]) & ~torch.eye(12, dtype=torch.bool)
    partner = same.float().argmax(dim=-1)
    assert torch.equal(labels[:, :, 1], letters.gather(1, partner))


def test_two_heads_learn_both_questions_and_one_head_one(run: Any) -> None:
    both = run(
        """return [1, 2].map((heads) => [0, 1].map((seed) => {
          const training = startTraining({ seed, ...switches, heads });
          for (let step = 0; step < 300; step++) training.step();
          return examine(training).both;
        }));""",
        switches=PLAIN,
    )
    assert max(both[0]) < 0.5
    assert min(both[1]) > 0.9


def says(page: Any) -> str:
    return page.locator(".cw-says").inner_text()


def wait_for(page: Any, text: str) -> None:
    page.wait_for_function(
        "(text) => document.querySelector('.cw-says').textContent.includes(text)",
        arg=text,
        timeout=120_000,
    )


@pytest.mark.parametrize("workers", [True, False])
def test_it_trains_pauses_steps_and_starts_again(
    browser: Any, own_page: Path, workers: bool
) -> None:
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    if not workers:
        page.add_init_script("delete window.Worker")
    page.goto(own_page.as_uri())
    wait_for(page, "step 0 of")
    page.get_by_role("button", name="One step").click()
    wait_for(page, "step 1 of")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("button", name="Pause").wait_for()
    page.wait_for_function(
        "() => Number(/step (\\d+)/.exec("
        "document.querySelector('.cw-says').textContent)[1]) > 5",
        timeout=120_000,
    )
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Train", exact=True).wait_for()
    stopped = says(page)
    page.wait_for_timeout(500)
    assert says(page) == stopped
    page.get_by_role("button", name="Start again").click()
    wait_for(page, "step 0 of")
    assert faults == []
    page.close()


def test_a_switch_starts_anew_and_keeps_the_curve_before(
    browser: Any, own_page: Path
) -> None:
    page = browser.new_page()
    page.goto(own_page.as_uri())
    wait_for(page, "step 0 of")
    for _ in range(3):
        page.get_by_role("button", name="One step").click()
    wait_for(page, "step 3 of")
    page.locator("[data-control=heads]").focus()
    page.keyboard.press("ArrowRight")
    wait_for(page, "2 heads, rate 0.01, seed 0: step 0 of")
    assert page.get_by_text("dashed: 1 head").count() == 1
    assert page.locator("svg >> text=head 2").count() == 1
    page.close()


def test_after_the_last_step_it_can_train_again_and_a_switch_does_not_stop_it(
    browser: Any, tmp_path: Path
) -> None:
    short = training_cards().html.replace('"most":600', '"most":12')
    assert '"most":12' in short
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{short}", "utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    wait_for(page, "step 0 of 12")
    page.get_by_role("button", name="Train", exact=True).click()
    wait_for(page, "step 12 of 12, the last")
    page.get_by_role("button", name="Train again").click()
    page.wait_for_function(
        "() => !document.querySelector('.cw-says').textContent.includes('the last')"
    )
    page.get_by_role("button", name="Pause").wait_for()
    page.locator("[data-control=heads]").focus()
    page.keyboard.press("ArrowRight")
    wait_for(page, "2 heads, rate 0.01, seed 0: step 12 of 12, the last")
    page.close()


def test_a_link_opens_its_settings_and_nonsense_changes_nothing(
    browser: Any, own_page: Path
) -> None:
    for link, said in (
        (
            "#training?heads=4&rate=0.03&seed=6&scaled=0&causal=1",
            "4 heads, rate 0.03, ",
        ),
        ("#training?heads=9&rate=x&seed=-1", "1 head, rate 0.01, seed 0: step 0"),
    ):
        page = browser.new_page()
        page.goto(own_page.as_uri() + link)
        wait_for(page, said)
        if "causal" in link:
            assert "seed 6, no scale, causal: step 0" in says(page)
        page.get_by_text("Copy link").click()
        wait_for(page, "link")
        page.close()


def test_on_a_phone_every_word_is_inside(browser: Any, own_page: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(own_page.as_uri() + "#training?heads=4")
    wait_for(page, "4 heads")
    outside = page.evaluate(
        """() => [...document.querySelectorAll("svg text")].filter((word) => {
          const own = word.getBoundingClientRect();
          const room = word.closest("svg").getBoundingClientRect();
          return own.right > room.right + 1 || own.bottom > room.bottom + 1
            || own.left < room.left - 1;
        }).map((word) => word.textContent)"""
    )
    assert outside == []
    page.close()
