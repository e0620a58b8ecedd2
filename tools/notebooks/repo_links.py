"""Carry the repository's address to wherever a reader needs it.

It stands in `_config.yml` alone, with the branch, which a release sets to its tag. From
there both are stamped into every notebook and into marked blocks of other files. A
notebook opens with its title and, after the first paragraph, a line of links: to its
page, to Colab, and from a chapter to its exercise or back. The next cell installs the
course on Colab. Blocks are marked `<!-- colab-links:begin -->` and
`<!-- colab-links:end -->`, the same with `clone` and `site`, and with `citation` in
CITATION.cff, where each mark stands in a comment of its own. The README shows a picture
of each chapter, a file with the first of those that its notebook stores.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools.notebooks.io import ROOT, dumps, read, tags, title
from tools.notebooks.previews import png, thumbnail

COLAB_TAGS = ("colab", "remove-cell")
THUMBNAILS = "book/_static/thumbnails"
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"
# The line of links, known by its badge, with the empty line before it.
LINKS = re.compile(rf"\n*^.*\]\({re.escape(BADGE)}\).*$", re.MULTILINE)
TITLE = re.compile(r"# .+(?:\n+[^#\n].*(?:\n.+)*)?")  # and the first paragraph


def repository(root: Path = ROOT) -> tuple[str, str]:
    """The address and the branch, from the one place where they stand."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    stated = config.get("repository") or {}
    if not stated.get("url") or not stated.get("branch"):
        raise ValueError(
            "_config.yml has no `repository: {url: …, branch: …}`; the Colab cell and "
            "the links are made from it."
        )
    return stated["url"].rstrip("/"), str(stated["branch"])


def published(root: Path = ROOT) -> str:
    """Where the site is published: GitHub Pages, unless `html: {baseurl: …}` is set."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    if stated := (config.get("html") or {}).get("baseurl"):
        return stated.rstrip("/") + "/"
    owner, name = repository(root)[0].removesuffix(".git").split("/")[-2:]
    return f"https://{owner}.github.io/{name}/"


def on_colab(name: str, root: Path = ROOT) -> str:
    """Where Colab opens a notebook, `name` being its path in the repository."""
    url, branch = repository(root)
    colab = url.replace(
        "https://github.com", "https://colab.research.google.com/github"
    )
    return f"{colab}/blob/{branch}/{name}"


def colab_source(root: Path = ROOT) -> str:
    """The cell after the title of every notebook."""
    url, branch = repository(root)
    return (
        "# On Colab this installs the course; anywhere else it does nothing.\n"
        "import sys\n"
        "\n"
        'if "google.colab" in sys.modules:\n'
        f'    %pip install -q "git+{url}@{branch}"'
    )


def links_line(folder: str, name: str, root: Path = ROOT) -> str:
    """The links of `folder/name`: its page, Colab, and its exercise or its chapter.

    A solution has no page, and names that of its exercise.
    """
    there = "book" if folder == "book" else "exercises"
    page = f"{published(root)}{there}/{Path(name).with_suffix('.html')}"
    said, other, called = "The questions as a page", "book", "Chapter"
    if folder == "book":
        said, other, called = "Read it as a page", "exercises", "Exercise"
    parts = [f"[{said}]({page})"]
    parts += [f"[![Open in Colab]({BADGE})]({on_colab(f'{folder}/{name}', root)})"]
    if (root / other / name).exists():
        parts += [f"[{called}](../{other}/{name})"]
    return " · ".join(parts)


def unstamped(nb: NotebookNode) -> NotebookNode:
    """The notebook with neither the line of links nor the cell for Colab."""
    cells = [cell for cell in nb.cells if "colab" not in tags(cell)]
    if cells and cells[0].cell_type == "markdown":
        cells[0] = NotebookNode(cells[0], source=LINKS.sub("", cells[0].source))
    return NotebookNode(nb, cells=cells)


def stamped(
    nb: NotebookNode, folder: str, name: str, root: Path = ROOT
) -> NotebookNode:
    """The notebook `folder/name` with its links and the cell for Colab, once each."""
    cells = unstamped(nb).cells
    opening = TITLE.match(cells[0].source) if cells else None
    if opening is None or cells[0].cell_type != "markdown":
        raise ValueError(
            f"{folder}/{name} does not begin with its title; put the cell with `# …` "
            "first."
        )
    after = cells[0].source[opening.end() :]
    text = f"{opening[0]}\n\n{links_line(folder, name, root)}{after}"
    install = new_code_cell(colab_source(root), metadata={"tags": list(COLAB_TAGS)})
    first = NotebookNode(cells[0], source=text)
    return NotebookNode(nb, cells=[first, install, *cells[1:]])


def thumbnails(root: Path = ROOT) -> dict[Path, tuple[bytes, str]]:
    """The files with a picture of each chapter: its bytes, and the words for it."""
    found = {}
    for path in sorted((root / "book").glob("[0-9][0-9]_*.ipynb")):
        if shown := thumbnail(read(path)):
            file = root / THUMBNAILS / f"{path.stem[:2]}.png"
            found[file] = png(shown), shown.data["text/plain"]
    return found


def blocks(root: Path = ROOT) -> dict[str, str]:
    """What stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->` in a page."""
    url, branch = repository(root)
    badge = "![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)"

    def opened(path: Path) -> str:
        found = (root / path).exists()
        return f"[{badge}]({on_colab(path.as_posix(), root)})" if found else ""

    drawn = {file.stem: words for file, (_, words) in thumbnails(root).items()}

    def shown(number: str) -> str:
        alt = html.escape(drawn.get(number, "")).replace("|", "&#124;")
        image = f'<img src="{THUMBNAILS}/{number}.png" width="170" alt="{alt}">'
        return image if alt else ""

    links = ["| | | chapter | notebook | exercise |", "|---|---|---|---|---|"]
    for path in sorted((root / "book").glob("*.ipynb")):
        number = path.stem[:2] if path.stem[:2].isdigit() else ""
        name = title(read(path)).replace("|", "\\|")
        both = (opened(Path(room, path.name)) for room in ("book", "exercises"))
        links.append(f"| {number} | {shown(number)} | {name} | {' | '.join(both)} |")
    get = f"git clone --branch {branch} {url}.git\ncd {url.rsplit('/', 1)[-1]}"
    local = [
        f"- [{path.stem[:2]} {title(read(path))}]({path.name}) · "
        f"[exercise](../exercises/{path.name})"
        for path in sorted((root / "book").glob("[0-9][0-9]_*.ipynb"))
        if (root / "exercises" / path.name).exists()
    ]
    clone = f"```sh\n{get}\n```"
    citation = f'repository-code: "{url}"'
    return {
        "colab-links": "\n".join(links),
        "lab-links": "\n".join(local),
        "clone": clone,
        "site": f"**[Read it, and try the transformer yourself]({published(root)})**",
        "citation": citation,
    }


def stamped_page(text: str, wanted: dict[str, str]) -> str:
    """A page with its marked blocks replaced by those wanted (most pages have none)."""
    for name, block in wanted.items():
        inside = f"{block}\n" if block else ""
        text = re.sub(
            rf"(<!-- {name}:begin -->\n).*?((?:# )?<!-- {name}:end -->)",
            lambda mark, inside=inside: mark[1] + inside + mark[2],  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def pages(root: Path = ROOT) -> list[Path]:
    """The files that may hold marked blocks."""
    named = (root / "README.md", root / "CITATION.cff")
    candidates = (*named, *sorted((root / "book").glob("*.md")))
    return [page for page in candidates if page.exists()]


def strays(paths: list[Path], root: Path = ROOT) -> list[Path]:
    """The files that hold the address where nothing keeps it up to date."""
    url, _ = repository(root)
    nothing = dict.fromkeys(blocks(root), "")
    found = []
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".ipynb":
            text = dumps(unstamped(read(path)))
        elif path in pages(root):
            text = stamped_page(text, nothing)
        if urlsplit(url).path.strip("/") in text and path != root / "_config.yml":
            found.append(path)
    return found
