"""The papers that the pages link to and those of references.bib are the same.

Notebooks link to a paper in plain Markdown, because Colab shows a citation's role as it
is typed; the page of references is made from the whole of references.bib.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from house_style import prose

from tools.notebooks.io import ROOT, read
from tools.notebooks.toc import page_sources

BIBLIOGRAPHY = ROOT / "book" / "references.bib"
HOSTS = (
    "aclanthology.org",
    "arxiv.org",
    "cdn.openai.com",
    "doi.org",
    "jmlr.org",
    "kellerjordan.github.io",
    "openreview.net",
    "papers.nips.cc",
    "transformer-circuits.pub",
    "www.lesswrong.com",
)
LINK = r"\]\((https?://(?:[^()\s]|\([^()\s]*\))+)\)"


def papers(text: str) -> set[str]:
    """The papers that a page links to."""
    return {link for link in re.findall(LINK, text) if urlsplit(link).hostname in HOSTS}


def listed(text: str) -> dict[str, str]:
    """The keys of a bibliography, each with the address of its paper (or nothing)."""
    entries = re.findall(r"(?ms)^@\w+\{\s*([^,\s]+)(.*?)^\}", text)
    address = r"\burl\s*=\s*\{([^}]*)\}"
    return {key: "".join(re.findall(address, body)) for key, body in entries}


def pages() -> dict[str, str]:
    """The prose of every page of the book, by its file."""
    texts = {}
    for path in page_sources(ROOT):
        text = prose(read(path)) if path.suffix == ".ipynb" else path.read_text("utf-8")
        texts[path.relative_to(ROOT).as_posix()] = text
    return texts


# ----------------------------------------------------------------- the course itself


def test_every_paper_that_a_page_links_to_is_in_the_bibliography():
    known = set(listed(BIBLIOGRAPHY.read_text("utf-8")).values())
    missing = [
        f"{name} links to {link}; add it to book/references.bib, with that url"
        for name, text in pages().items()
        for link in sorted(papers(text) - known)
    ]
    assert not missing, "\n".join(missing)


def test_every_entry_of_the_bibliography_is_linked_from_a_page():
    linked = {link for text in pages().values() for link in papers(text)}
    unread = [
        f"no page links to {key} ({url or 'which has no url'}); link it or drop it"
        for key, url in listed(BIBLIOGRAPHY.read_text("utf-8")).items()
        if url not in linked
    ]
    assert not unread, "\n".join(unread)


def test_no_paper_is_listed_twice():
    addresses = list(listed(BIBLIOGRAPHY.read_text("utf-8")).values())
    assert len(addresses) > 70
    assert len(addresses) == len(set(addresses))


def test_no_page_has_a_citation_that_colab_would_show_as_typed():
    typed = [
        f"{name}: {role}; write [Author et al. (year)](https://…)"
        for name, text in pages().items()
        for role in re.findall(r"\{cite[\w:]*\}`[^`]*`", text)
    ]
    assert not typed, "\n".join(typed)


# -------------------------------------------------------------- what is read from where


def test_links_to_papers_are_found_with_brackets_and_over_two_lines():
    text = (
        "A, [one\ntwo](https://arxiv.org/abs/1) and [b](https://doi.org/10(88)9-0); "
        "[code](https://github.com/a/b), (https://arxiv.org/abs/2)"
    )
    assert papers(text) == {"https://arxiv.org/abs/1", "https://doi.org/10(88)9-0"}


def test_an_entry_without_an_address_is_listed_without_one():
    text = (
        "@article{one,\n  title = {{A} title},\n  url = {https://doi.org/1}\n}\n\n"
        "@book{two,\n  title = {B}\n}\n"
    )
    assert listed(text) == {"one": "https://doi.org/1", "two": ""}
