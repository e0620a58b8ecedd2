"""What a page loads, the card a link to it shows, and the marks it must get."""

from __future__ import annotations

import gzip
import struct
import urllib.request

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tools import lighthouse
from tools.assets import names_in, no_waiting, one_stylesheet, pruned
from tools.browser import served
from tools.cards import card, title_of, weights, with_card

COURSE = "Attention and transformers from first principles"


@pytest.fixture
def site(tmp_path):
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (tmp_path / "book").mkdir()
    (static / "basic.css").write_text("a { background: url(file.png) }")
    theme = '@import "../basic.css";\nb { background: url("data:image/png;base64,x") }'
    (static / "styles" / "theme.css").write_text(theme)
    (static / "course.css").write_text("c { color: red }")
    (static / "documentation_options.js").write_text("const DOCUMENTATION_OPTIONS = {}")
    return tmp_path


NAMES = frozenset("abc")  # of all elements, classes and ids
HEAD = """<head>
  <link href="../_static/styles/theme.css?digest=1" rel="stylesheet" />
  <link rel="icon" href="../_static/favicon.svg"/>
  <link rel="stylesheet" type="text/css" href="../_static/course.css?v=2" />
</head>"""


def test_stylesheets_become_one_in_their_order(site):
    static = site / "_static"
    page = one_stylesheet(HEAD, site / "book", static, NAMES)
    (file,) = static.glob("site.*.css")
    assert page.count("stylesheet") == 1
    assert f'href="../_static/{file.name}"' in page
    assert "favicon" in page
    text = file.read_text("utf-8")
    assert text.index("a{") < text.index("b{") < text.index("c{")
    assert "url(file.png)" in text  # as seen from the folder of the one file
    assert "data:image/png" in text
    assert "@import" not in text


def test_pages_with_the_same_stylesheets_share_the_file(site):
    static = site / "_static"
    one_stylesheet(HEAD, site / "book", static, NAMES)
    page = one_stylesheet(HEAD.replace("../", ""), site, static, NAMES)
    assert len(list(static.glob("site.*.css"))) == 1
    assert 'href="_static/site.' in page


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


def test_a_missing_stylesheet_is_an_error(site):
    (site / "_static" / "course.css").unlink()
    with pytest.raises(FileNotFoundError):
        one_stylesheet(HEAD, site / "book", site / "_static", NAMES)


def test_scripts_wait_and_their_settings_are_there_at_once(site):
    page = no_waiting(
        '<script src="../_static/documentation_options.js?v=1"></script>'
        '<script src="../_static/doctools.js?v=1"></script>'
        "<script>DOCUMENTATION_OPTIONS.pagename = 'x'</script>",
        site / "book",
    )
    assert "<script>const DOCUMENTATION_OPTIONS = {}</script>" in page
    assert '<script defer src="../_static/doctools.js?v=1"></script>' in page
    assert "<script>DOCUMENTATION_OPTIONS.pagename" in page


@pytest.mark.parametrize(
    "title",
    [
        "Notation",
        "Queries, keys and values let the network choose what to look for",
        "x" * 8,
    ],
)
def test_the_words_of_a_card_stay_beside_its_map(title):
    figure = card(title, COURSE)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    map_left = figure.axes[0].get_window_extent().x0
    boxes = [text.get_window_extent() for text in figure.texts]
    assert boxes[0].x1 < map_left
    assert all(box.x0 > 0 and box.y0 > 0 and box.y1 < 610 for box in boxes)


def test_the_map_of_a_card_is_causal_and_its_own():
    table = weights("Notation")
    assert table.filled(0).sum(axis=1) == pytest.approx(1)
    assert (table.mask == (table.filled(0) == 0)).all()
    assert table.mask[0, 1:].all()
    assert (table != weights("Glossary")).any()


def test_a_page_names_its_card(tmp_path):
    page = (
        '<head><meta property="og:title" /><title>T</title></head>'
        '<h1>One <em>query</em> &amp; keys<a class="headerlink" href="#x">#</a></h1>'
    )
    assert title_of(page) == "One query & keys"
    found = with_card(page, "book/one", tmp_path, "https://example.org/", COURSE)
    image = "https://example.org/_static/cards/book_one.png"
    assert f'<meta property="og:image" content="{image}" />' in found
    png = (tmp_path / "cards" / "book_one.png").read_bytes()
    assert struct.unpack(">II", png[16:24]) == (1200, 630)


def test_a_page_without_a_heading_gets_no_card(tmp_path):
    assert with_card("<p>x</p>", "search", tmp_path, "", COURSE) == "<p>x</p>"
    assert not list(tmp_path.iterdir())


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
