"""Every page of the built site, in Chromium: wide and narrow, light and dark.

COURSE_SITE points the tests at a site elsewhere than `_build/html`.
"""

from __future__ import annotations

import functools
import gzip
import html
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from small_site import card_faults

from course_utils.display.figures import COLOURS_DARK
from course_utils.display.plots import COLOURS
from tools.notebooks.repo_links import published
from tools.site.browser import DRAWN, LAUNCH, chromium, served
from tools.site.pages import HOW_TO_ANSWER

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("COURSE_SITE", ROOT / "_build" / "html")).resolve()
LIMIT = 400_000  # bytes of a first visit, gzipped, before a model is loaded
MODEL_LIMIT = 350_000  # bytes of the model that a page loads when it is seen
CODE_PAGE = "book/07_permutation_equivariance.html"


def built_pages() -> list[str]:
    """Every page, as its address in the site; the first alone where none is built."""
    found = sorted(path.relative_to(SITE) for path in SITE.rglob("*.html"))
    pages = [p.as_posix() for p in found if not p.parts[0].startswith("_")]
    return [page for page in pages if page != "index.html"] or ["index.html"]


browser_test = pytest.mark.browser
every_page = pytest.mark.parametrize("name", built_pages())


# ---------------------------------------------------------------- server and browser


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The site, served on this machine."""
    with served(SITE) as start:
        yield start


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        yield opened
        opened.close()


class Visit:
    """A page that was opened, and what went wrong on it."""

    def __init__(self, browser: Browser, start: str, name: str, width: int = 1280):
        self.context = browser.new_context(viewport={"width": width, "height": 900})
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(120_000)  # milliseconds: a busy machine is slow
        self.faults: list[str] = []
        self.bytes = self.model_bytes = 0
        self.start = start
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("console", self.heard)
        self.page.on("request", self.asked)
        self.page.on("response", self.answered)
        self.page.goto(start + name, wait_until="load")
        self.page.wait_for_function(DRAWN)

    def heard(self, message) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def asked(self, request) -> None:
        if not request.url.startswith((self.start, "data:", "blob:")):
            self.faults.append(f"leaves the site: {request.url}")

    def answered(self, response) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")
        elif response.url.startswith("http"):
            file = SITE / unquote(urlsplit(response.url).path).lstrip("/")
            file = file / "index.html" if file.is_dir() else file
            size = len(gzip.compress(file.read_bytes()))
            if file.parent.name == "weights":
                self.model_bytes += size
            else:
                self.bytes += size

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


# --------------------------------------------------------------- what a page must be

SMALLEST = 11  # pixels of a word in a drawing, on a phone
FAULTS = r"""() => {
  // Boxes of lines touch, so a collision is more. The box of a slanted word is mostly
  // empty, and that of a formula much higher than its letters.
  const collisions = (words) => {
    const level = words.filter((word) => {
      const { a, b } = word.getScreenCTM();
      return Math.abs(a * b) < 1e-6 && !word.querySelector("tspan");
    });
    const boxes = level.map((word) => [word, word.getBoundingClientRect()]);
    const common = (a, b) => [
      Math.min(a.right, b.right) - Math.max(a.left, b.left),
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
    return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
      innerWidth < 600 && Math.min(...common(a, b)) > 4
    ).map(([other]) => `"${one.textContent}" lies on "${other.textContent}"`));
  };
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth)
    found.push(`scrolls sideways: ${document.documentElement.scrollWidth} px`);
  const hidden = "pre, code, script, style, math, svg, .cw-says, noscript";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const raw = /\\[([]|\$|\\[a-z]{3,}|\{[a-z:]+\}`|^\s*:::/;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.closest(hidden) && raw.test(node.data))
      found.push(`raw markup: ${node.data.trim().slice(0, 80)}`);
  }
  for (const image of document.images) {
    if (!image.hasAttribute("alt")) found.push(`no alt text: ${image.src}`);
    if (!image.complete || !image.naturalWidth) found.push(`broken: ${image.src}`);
  }
  for (const drawing of document.querySelectorAll(".bd-article svg")) {
    const said = drawing.getAttribute("aria-label") || drawing.closest("[aria-hidden]");
    if (!said && !drawing.closest("mjx-container, button"))
      found.push(`a drawing without text: ${drawing.outerHTML.slice(0, 80)}`);
  }
  for (const word of document.querySelectorAll(".course-figure g[id*='-text_']")) {
    const own = word.getBoundingClientRect();
    const room = word.closest("svg").getBoundingClientRect();
    if (own.width && (own.left < room.left - 1 || own.right > room.right + 1
        || own.top < room.top - 1 || own.bottom > room.bottom + 1))
      found.push(`words cut off in the figure: ${word.closest("svg").ariaLabel}`);
  }
  const drawings = ".bd-article svg:not(mjx-container *, button *)";
  for (const drawing of document.querySelectorAll(drawings)) {
    const unit = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
    const size = (word) => unit * parseFloat(getComputedStyle(
      word.querySelector("tspan[style*=font-size]") || word).fontSize);
    const words = [...drawing.querySelectorAll("text")].filter(
      (word) => word.textContent.trim() && word.getBoundingClientRect().width);
    const small = words.filter((word) => innerWidth < 600 && size(word) < SMALLEST);
    if (small.length)
      found.push(`words of ${size(small[0]).toFixed(1)} px: ${small[0].textContent}`);
    if (drawing.closest(".course-figure")) found.push(...collisions(words));
  }
  return found;
}""".replace("SMALLEST", str(SMALLEST))


def lay_out(page: Page) -> None:
    """Wait until what is far from the screen is laid out and measured, too."""
    page.evaluate("layOutTheRest()")


def axe_faults(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe finds wrong, one line for each."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    # Thousands of outlines and coloured words that are the same on all pages: FAULTS
    # asks for the text of drawings, and code is looked at on one page.
    alike = [["mjx-container"], [".course-figure svg"]]
    alike += [] if page.url.endswith(CODE_PAGE) else [["div.highlight"]]
    context = {"exclude": alike}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [
        f"axe {rule['id']}: {node['target']} {node['html'][:120]}"
        for rule in found
        for node in rule["nodes"][:3]
    ]


@browser_test
@every_page
@pytest.mark.parametrize("width", [1280, 390])
def test_page_is_whole_for_everyone(browser, address, name, width):
    with Visit(browser, address, name, width) as visit:
        page = visit.page
        page.evaluate(
            "document.querySelectorAll('img').forEach(i => { i.loading = 'eager' })"
        )
        page.wait_for_load_state("networkidle")
        lay_out(page)
        faults = visit.faults + page.evaluate(FAULTS) + axe_faults(page)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        page.wait_for_timeout(300)  # colours fade from one theme to the other
        faults += [f"dark {fault}" for fault in axe_faults(page, ["color-contrast"])]
        assert not faults, "\n".join(faults)


@browser_test
@every_page
def test_page_is_light_on_a_first_visit(browser, address, name):
    with Visit(browser, address, name) as visit:
        visit.page.wait_for_load_state("networkidle")
        assert visit.bytes <= LIMIT, f"{visit.bytes} bytes gzipped"
        assert visit.model_bytes <= MODEL_LIMIT, f"model: {visit.model_bytes} bytes"


@browser_test
@every_page
def test_page_works_from_a_file(browser, name):
    with Visit(browser, "file://" + str(SITE) + "/", name) as visit:
        visit.page.wait_for_timeout(100)
        assert not visit.faults, "\n".join(visit.faults)


# ------------------------------------------------------------------------ interactives


def changes(box: Locator, act, drawing: bool = True) -> None:
    """Do something to an interactive, and see it answer in state, words or ink."""
    read = "w => [w.dataset.state, w.querySelector('svg').innerHTML + w.innerText]"
    before = box.evaluate(read)
    act()
    after = box.evaluate(read)
    assert before[0] != after[0], "the state did not change"
    for _ in range(
        20 if drawing else 0
    ):  # what a browser is asked comes a little later
        if before[1] != after[1]:
            break
        box.page.wait_for_timeout(50)
        after = box.evaluate(read)
    assert not drawing or before[1] != after[1], "nothing was drawn or said"


def press(control: Locator, key: str) -> None:
    control.focus()
    control.page.keyboard.press(key)


def operate(box: Locator, control: Locator) -> None:
    """Use one control by mouse and by keyboard."""
    kind = control.get_attribute("data-kind")
    if kind == "slider":
        top = control.get_attribute("max")
        at_end = control.input_value() == top
        changes(box, lambda: press(control, "ArrowLeft" if at_end else "ArrowRight"))
        size = control.bounding_box()
        left = int(control.input_value()) > int(top or 0) / 2
        spot = {"x": size["width"] * (0.1 if left else 0.9), "y": size["height"] / 2}
        changes(box, lambda: control.click(position=spot))
    elif kind in ("toggle", "button"):
        changes(box, control.click)
        # "First order" pressed again is heard, and draws what stands there already
        again = kind == "toggle"
        changes(box, lambda: press(control, "Space"), drawing=again)
    elif kind == "text":
        changes(box, lambda: control.press_sequentially("x"))
        changes(box, lambda: press(control, "Backspace"))
        changes(box, lambda: control.fill(""))
        words = control.locator("xpath=../following-sibling::*//button")
        changes(box, words.first.click)
        changes(box, lambda: press(words.first, "Enter"))
    elif kind == "select":
        options = control.locator("option").all_inner_texts()
        at_the_end = control.input_value() == options[-1]
        other, back = (0, "ArrowDown") if at_the_end else (-1, "ArrowUp")
        changes(box, lambda: control.select_option(options[other]))
        changes(box, lambda: press(control, back))
    elif kind == "tokens":
        choices = control.locator("input")
        changes(box, lambda: choices.nth(1).click())
        changes(box, lambda: press(choices.nth(1), "ArrowLeft"))
    else:
        raise AssertionError(f"a control of an unknown kind: {kind}")


def drag(spot: Locator, by: float) -> None:
    """Take hold of something and let it go further to the right."""
    spot.scroll_into_view_if_needed()
    at, mouse = spot.bounding_box(), spot.page.mouse
    x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + by / 2, y)
    mouse.move(x + by, y)
    mouse.up()


def touch(box: Locator, spots: list[Locator]) -> None:
    """Use what can be pressed or dragged in the drawing, by mouse and by keyboard.

    To press what is chosen already changes nothing, so two are pressed in turn.
    """
    held = [spot for spot in spots if spot.get_attribute("data-act") == "drag"]
    pressed = [spot for spot in spots if spot not in held]
    for spot in held:
        changes(box, lambda spot=spot: press(spot, "ArrowRight"))
        changes(box, lambda spot=spot: drag(spot, 75))
    if pressed:
        press(pressed[0], "Enter")
        changes(box, pressed[-1].click)
        changes(box, lambda: press(pressed[0], "Enter"))


@browser_test
@every_page
@pytest.mark.parametrize("width", [1280, 390])
def test_interactives_answer_to_mouse_and_keyboard(browser, address, name, width):
    if "course-widget" not in (SITE / name).read_text("utf-8"):
        return  # nothing to operate on this page
    with Visit(browser, address, name, width) as visit:
        for box in visit.page.locator(".course-widget").all():
            box.scroll_into_view_if_needed()
            for fold in box.locator("details:has([data-control]) summary").all():
                fold.click()
            height = box.bounding_box()["height"]
            for control in box.locator("[data-control]").all():
                operate(box, control)
            touch(box, box.locator("svg [data-key]").all()[:3])
            assert abs(box.bounding_box()["height"] - height) < 80
        assert not visit.faults, "\n".join(visit.faults)


@browser_test
def test_the_first_address_leads_to_the_introduction(browser, address):
    with Visit(browser, address, "") as visit:
        visit.page.wait_for_url("**/book/intro.html")


@browser_test
def test_what_is_far_off_is_laid_out_though_nobody_moves(browser, address):
    """A picture of the whole page shows all of it."""
    far = "[...document.querySelectorAll(BLOCKS)]"
    with Visit(browser, address, CODE_PAGE) as visit:
        visit.page.wait_for_function(
            f"{far}.every((block) => block.style.contentVisibility === 'visible')"
        )
        assert visit.page.evaluate(f"{far}.length") > 50


@browser_test
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("place", ["theorem-07-1", "equivariant-is-not-invariant"])
def test_a_link_into_a_page_leads_to_its_place_and_stays_there(
    browser, address, width, place
):
    with Visit(browser, address, f"{CODE_PAGE}#{place}", width) as visit:
        lay_out(visit.page)
        visit.page.wait_for_timeout(300)
        top, header = visit.page.evaluate(
            f"""[document.getElementById("{place}"),
            document.querySelector(".bd-header-article")]
            .map((box) => box.getBoundingClientRect())
            .map((box, i) => i ? box.bottom : box.top)"""
        )
        assert header <= top < header + 60  # below what stays at the top, and near it


@browser_test
def test_the_section_that_is_read_is_marked_among_the_contents(browser, address):
    with Visit(browser, address, CODE_PAGE) as visit:
        links, marked = (
            visit.page.locator(f".page-toc a{which}")
            for which in ("", "[aria-current]")
        )
        assert links.count() > 5
        for chosen in (5, 2):
            links.nth(chosen).click()
            expect(marked).to_have_count(1)
            expect(marked).to_have_text(links.nth(chosen).inner_text())


@browser_test
@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("softmax", "book/06_queries_keys_values"),
        ("leak test", "book/09_masking"),
        ("RoPE", "book/08_positional_encodings"),
    ],
)
def test_search_finds_the_chapter(browser, address, query, page):
    with Visit(browser, address, f"search.html?q={query}") as visit:
        found = visit.page.locator(f"#search-results li a[href*='{page}']")
        expect(found.first).to_be_visible()
        visit.page.wait_for_load_state("networkidle")
        assert not visit.faults, "\n".join(visit.faults)


# ----------------------------------------------------------------- without a browser


class Links(HTMLParser):
    """The ids of a page, and where its links lead."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes) -> None:
        said = dict(attributes)
        self.ids |= {said[key] for key in ("id", "name") if said.get(key)}
        if tag == "a" and said.get("href"):
            self.links.append(said["href"])


@functools.cache
def links_of(path: Path) -> Links:
    return Links(path.read_text("utf-8"))


@browser_test
@every_page
def test_internal_links_and_anchors_exist(name):
    broken = []
    for link in links_of(SITE / name).links:
        target, anchor = urldefrag(link)
        if urlsplit(link).scheme:
            continue
        path = ((SITE / name).parent / unquote(target)) if target else SITE / name
        if not path.is_file() or (
            anchor and path.suffix == ".html" and anchor not in links_of(path).ids
        ):
            broken.append(link)
    assert not broken


@browser_test
@every_page
def test_notebook_pages_and_only_they_open_in_colab(name):
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
    home = repository["url"].replace("https://github.com/", "")
    source = (ROOT / name).with_suffix(".ipynb")
    colab = "https://colab.research.google.com/github"
    notebook = Path(name).with_suffix(".ipynb").as_posix()
    expected = f"{colab}/{home}/blob/{repository['branch']}/{notebook}"
    found = [x for x in links_of(SITE / name).links if x.startswith(colab)]
    assert found == ([expected] if source.is_file() else [])


@browser_test
def test_what_was_renamed_is_found_by_its_old_name():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    for old, new in config["redirects"].items():
        assert (SITE / f"{old}.html").is_file()
        assert ((SITE / old).parent / new).is_file()
    missing = [
        f"{page}#{old}"
        for page, renamed in config["renamed_anchors"].items()
        for old in renamed
        if not any(x.startswith(old) for x in links_of(SITE / f"{page}.html").ids)
    ]
    assert config["renamed_anchors"]
    assert not missing


@browser_test
@every_page
def test_a_link_to_the_page_shows_a_card_with_its_title(name):
    head = (SITE / name).read_text("utf-8").split("</head>")[0]
    tags = dict(re.findall(r'<meta property="og:([\w:]+)" content="([^"]*)"', head))
    if "title" not in tags:
        assert name == "search.html"  # nobody sends a link to it
        return
    assert html.unescape(tags["image:alt"]) == html.unescape(tags["title"])
    assert tags["image"].startswith(published())
    assert not card_faults(SITE / tags["image"].removeprefix(published()))


@browser_test
@every_page
def test_exercises_and_only_they_say_where_they_can_be_answered(name):
    said = HOW_TO_ANSWER.strip() in (SITE / name).read_text("utf-8")
    assert said == name.startswith("exercises/")


def test_the_sites_colours_are_those_of_the_figures():
    sheet = (ROOT / "book" / "_static" / "course.css").read_text("utf-8")
    for mode, palette in (("light", COLOURS), ("dark", COLOURS_DARK)):
        block = re.search(rf'data-theme="{mode}"\] \{{(.*?)\}}', sheet, re.S)
        assert block
        stated = dict(re.findall(r"--course-(\w+): (#\w{6})", block[1]))
        assert {name: stated.get(name) for name in palette} == palette
