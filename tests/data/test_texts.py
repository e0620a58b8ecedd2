"""Larger texts: stories from a network, Python's own sources without one."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from course_utils.data import texts
from course_utils.data.texts import load_text, split_documents

CONTENT = "".join(
    f"Story {i} of a très small cat. " * 5 + "\n<|endoftext|>\n" for i in range(60)
).encode()


class Network:
    """Stands for the host: serves CONTENT as the beginning of the pinned file."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.total = str(texts.STORIES_BYTES)
        self.error: Exception | None = None
        self.lost = 0

    def urlopen(self, request: Any, timeout: float) -> Any:
        self.asked.append(request)
        if self.error:
            raise self.error
        _, _, last = request.get_header("Range").partition("-")
        answer = io.BytesIO(CONTENT[: int(last) + 1 - self.lost])
        answer.headers = {"Content-Range": f"bytes 0-{last}/{self.total}"}  # type: ignore[attr-defined]
        return answer


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network()
    monkeypatch.setattr(urllib.request, "urlopen", network.urlopen)
    return network


def test_stories_come_whole(network: Network, tmp_path: Path) -> None:
    found = load_text("stories", 2000, cache=tmp_path)
    assert found.name == "stories"
    assert found.documents[0].startswith("Story 0 of a très small cat.")
    assert all(
        d.count("Story") == 5 for d in found.documents
    )  # the cut one is left out


def test_only_what_is_needed_of_the_pinned_file_is_fetched(
    network: Network, tmp_path: Path
) -> None:
    load_text("stories", 2000, cache=tmp_path)
    (request,) = network.asked
    assert request.get_header("Range") == "bytes=0-1999"
    assert "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64" in request.full_url


def test_the_kept_copy_needs_no_network(network: Network, tmp_path: Path) -> None:
    first = load_text("stories", 2000, cache=tmp_path)
    network.error = urllib.error.URLError("no route")
    assert load_text("stories", 2000, cache=tmp_path) == first
    assert len(network.asked) == 1


def test_a_damaged_copy_is_fetched_again(
    network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = load_text("stories", 2000, cache=tmp_path)
    (copy,) = tmp_path.iterdir()
    copy.write_bytes(copy.read_bytes()[:-3])
    assert load_text("stories", 2000, cache=tmp_path) == first
    assert "damaged" in capsys.readouterr().out


@pytest.mark.parametrize("trouble", ["no route", "other file", "cut", "slow"])
def test_without_stories_the_library_is_read(
    network: Network,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trouble: str,
) -> None:
    def late(seconds: float, work: Any) -> Any:
        raise TimeoutError

    if trouble == "no route":
        network.error = urllib.error.URLError("no route")
    elif trouble == "other file":
        network.total = "17"
    elif trouble == "cut":
        network.lost = 5
    else:
        monkeypatch.setattr(texts, "within", late)
    found = load_text("stories", 2000, cache=tmp_path)
    assert found.name == "library"
    said = capsys.readouterr().out
    assert "Going on with Python's own sources" in said
    assert {"no route": "no route", "other file": "17 bytes", "cut": "cut"}.get(
        trouble, "did not arrive"
    ) in said
    assert not list(tmp_path.iterdir())


def test_a_full_disk_keeps_no_copy_and_stops_nothing(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert load_text("stories", 2000, cache=tmp_path).name == "stories"
    assert not list(tmp_path.iterdir())


def test_the_library_is_code_with_its_indentation_and_no_file_twice() -> None:
    found = load_text("library", 2_000_000)
    assert sum(map(len, found.documents)) >= 2_000_000
    assert len(set(found.documents)) == len(found.documents)
    assert any("\n    def " in document for document in found.documents)
    assert load_text("library", 2_000_000) == found


def test_help_is_the_help_topics() -> None:
    assert any("with" in document for document in load_text("help", 1000).documents)


# ------------------------------------------------------------------------------ split


def test_no_document_is_in_two_parts() -> None:
    documents = [f"document {i} " + "x" * (i % 7) for i in range(200)]
    split = split_documents([*documents, *documents], 0.1, 0.1)
    parts = [set(part.split("\n\n")) for part in split]
    assert set.union(*parts) == set(documents)
    assert sum(map(len, parts)) == len(documents)
    assert 0.08 < len(split.validation) / sum(map(len, split)) < 0.12


def test_another_seed_holds_out_others() -> None:
    documents = [f"document {i}" for i in range(50)]
    assert split_documents(documents) == split_documents(documents)
    assert split_documents(documents).test != split_documents(documents, seed=1).test


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: load_text("songs"), "name is 'songs', expected one of"),
        (lambda: load_text("help", 5), "n_characters is 5"),
        (lambda: split_documents(["a", "b", "c"], 0.6, 0.6), "sum is below 1"),
        (lambda: split_documents(["a", "a", "b"]), "2 different documents"),
        (lambda: split_documents("a whole text"), "no list of texts"),
        (lambda: split_documents([1, 2, 3]), "no list of texts"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
