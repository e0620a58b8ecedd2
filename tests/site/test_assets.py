"""What a page loads, and the marks it must get."""

from __future__ import annotations

import gzip
import re
import urllib.request

import pytest
from sphinx.errors import ExtensionError

from tools.site import lighthouse
from tools.site.assets import names_in, pruned, stylesheet, take_out
from tools.site.browser import served


@pytest.fixture
def site(tmp_path):
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (tmp_path / "book").mkdir()
    (static / "basic.css").write_text("a { background: url(file.png) }")
    theme = '@import "../basic.css";\nb { background: url("data:image/png;base64,x") }'
    (static / "styles" / "theme.css").write_text(theme)
    return tmp_path


def test_a_stylesheet_brings_what_it_imports_as_seen_from_another_folder(site):
    text = stylesheet(site / "_static" / "styles" / "theme.css", site / "_static")
    assert text.index("url(file.png)") < text.index("data:image/png")
    assert "@import" not in text


def test_a_pattern_that_finds_nothing_in_the_theme_is_an_error(site):
    file = site / "_static" / "basic.css"
    take_out(re.compile("background: "), file)
    assert file.read_text() == "a { url(file.png) }"
    with pytest.raises(ExtensionError, match="the theme has changed"):
        take_out(re.compile("background: "), file)


@pytest.mark.slow
def test_every_page_loads_one_stylesheet_which_is_there(page, small_site):
    (sheet,) = (small_site / "_static").glob("site.*.css")
    for name, up in (("book/06_queries", "../"), ("search", "")):
        (link,) = page(name).select("link[rel=stylesheet]")
        assert link["href"] == f"{up}_static/{sheet.name}"
    text = sheet.read_text("utf-8")
    rules = (".navbar-brand{", ".keep{", ".course-widget{--course-ink")
    order = [text.index(rule) for rule in rules]  # theme, course, interactives
    assert order == sorted(order)
    assert "@font-face" not in text
    assert "@import" not in text


@pytest.mark.slow
def test_scripts_wait_and_their_settings_are_there_at_once(page, small_site):
    for name in ("book/06_queries", "search"):
        scripts = page(name).select("script")
        files = [script for script in scripts if script.has_attr("src")]
        assert len(files) > 7
        assert all(script.has_attr("defer") for script in files)
        inside = [script.get_text() for script in scripts]
        (settings,) = [x for x in inside if "DOCUMENTATION_OPTIONS = {" in x]
        (named,) = [x for x in inside if "DOCUMENTATION_OPTIONS.pagename" in x]
        assert inside.index(settings) < inside.index(named)
        for script in files:
            file = (small_site / name).parent / script["src"].split("?")[0]
            assert file.is_file()


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("p.note{color:red}", "p.note{color:red}"),
        (".gone{color:red}", ""),
        ("#place > p{color:red}", "#place > p{color:red}"),
        ("#nowhere > p{color:red}", ""),
        (".gone, p:hover, p::after{top:0}", "p:hover,p::after{top:0}"),
        ("p:not(.gone) [data-gone]{top:0}", "p:not(.gone) [data-gone]{top:0}"),
        ("@media (width < 9px) { .gone{top:0} }", ""),
        ("@media print { p{top:0} .gone{top:0} }", "@media print{\np{top:0}\n}"),
        ("@font-face{font-family:x}", "@font-face{font-family:x}"),
        (":root{--blue:#00f} /* a word */", ":root{--blue:#00f}"),
        ('p{background:url("data:x,{}")}', 'p{background:url("data:x,{}")}'),
    ],
)
def test_only_rules_that_no_page_can_use_are_left_out(rule, kept):
    names = frozenset({"p", "note", "place"})
    assert pruned(rule, names) == kept
    assert pruned(kept, names) == kept


def test_names_come_from_pages_and_scripts(site):
    (site / "book" / "x.html").write_text('<p class="note" id="place">Hi</p>')
    (site / "_static" / "x.js").write_text("box.classList.add('is-open')")
    assert names_in(site) >= {"p", "note", "place", "is-open", "bs-tooltip-auto"}


def test_text_is_served_compressed_as_by_a_public_host(tmp_path):
    (tmp_path / "page.html").write_text("word " * 1000)
    with (
        served(tmp_path, compressed=True) as address,
        urllib.request.urlopen(address + "page.html") as answer,
    ):
        body = answer.read()
        assert answer.headers["Content-Encoding"] == "gzip"
    assert len(body) < 200
    assert gzip.decompress(body).decode() == "word " * 1000


def scored(**scores):
    categories = {
        name: {"score": value, "auditRefs": []} for name, value in scores.items()
    }
    return {"categories": categories, "audits": {}}


def test_the_median_of_the_runs_counts():
    others = {"accessibility": 1.0, "best-practices": 1.0, "seo": 0.94}
    runs = [scored(performance=p, **others) for p in (0.5, 0.96, 0.97)]
    got = lighthouse.marks(runs)
    assert got["performance"] == 96
    assert lighthouse.below(got, lighthouse.DESKTOP) == ["seo"]


def test_the_dearest_complaint_is_named_first():
    found = scored(performance=0.5)
    found["categories"]["performance"]["auditRefs"] = [
        {"id": "small", "weight": 1},
        {"id": "large", "weight": 30},
        {"id": "fine", "weight": 30},
    ]
    scores = {"small": 0.0, "large": 0.5, "fine": 1.0}
    found["audits"] = {name: {"score": score} for name, score in scores.items()}
    assert lighthouse.complaints(found) == ["large", "small"]
