"""Carry the repository's address to wherever a reader needs it.

It stands in `_config.yml` alone. From there it is stamped into the first cell of every
notebook (which installs the course on Colab) and into marked blocks of other files:
`<!-- colab-links:begin -->` … `<!-- colab-links:end -->`, the same with `clone`, and
with `citation` in CITATION.cff, where each mark stands in a comment of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools.files import ROOT, read, tags, title

COLAB_TAGS = ("colab", "remove-cell")


def repository(root: Path = ROOT) -> tuple[str, str]:
    """The address and the branch, from the one place where they stand."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    stated = config.get("repository") or {}
    if not stated.get("url") or not stated.get("branch"):
        raise ValueError(
            "_config.yml has no `repository: {url: …, branch: …}`; the Colab cell and "
            "the links are made from it."
        )
    return stated["url"].rstrip("/"), stated["branch"]


def published(root: Path = ROOT) -> str:
    """Where the site is published: the Pages address of the repository."""
    owner, name = repository(root)[0].removesuffix(".git").split("/")[-2:]
    return f"https://{owner}.github.io/{name}/"


def colab_source(root: Path = ROOT) -> str:
    """The first cell of every notebook."""
    url, branch = repository(root)
    return (
        "# On Colab this installs the course; anywhere else it does nothing.\n"
        "import sys\n"
        "\n"
        'if "google.colab" in sys.modules:\n'
        f'    %pip install -q "git+{url}@{branch}"'
    )


def stamped(nb: NotebookNode, source: str) -> NotebookNode:
    """The notebook with `source` as its first cell, in place of any older one."""
    rest = [cell for cell in nb.cells if "colab" not in tags(cell)]
    first = new_code_cell(source, metadata={"tags": list(COLAB_TAGS)})
    return NotebookNode(nb, cells=[first, *rest])


def blocks(root: Path = ROOT) -> dict[str, str]:
    """What stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->` in a page."""
    url, branch = repository(root)
    colab = url.replace(
        "https://github.com", "https://colab.research.google.com/github"
    )
    links = [
        f"- [{title(read(path))}]({colab}/blob/{branch}/book/{path.name})"
        for path in sorted((root / "book").glob("*.ipynb"))
    ]
    clone = f"```sh\ngit clone {url}.git\ncd {url.rsplit('/', 1)[-1]}\n```"
    citation = f'repository-code: "{url}"'
    return {"colab-links": "\n".join(links), "clone": clone, "citation": citation}


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
    url, branch = repository(root)
    nothing = dict.fromkeys(blocks(root), "")
    found = []
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".ipynb":
            text = text.replace(f"git+{url}@{branch}", "", 1)
        elif path in pages(root):
            text = stamped_page(text, nothing)
        if urlsplit(url).path.strip("/") in text and path != root / "_config.yml":
            found.append(path)
    return found
