"""Multi30k with and without a network: found, refused, kept, or replaced."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from course_utils.data import corpora
from course_utils.data.corpora import CorpusUnavailable, Translation, load_translation
from course_utils.data.grammar.sentence_pairs import Pair

SMALL = {
    "train": {
        "en": ["a dog .", "two &quot; cats ."],
        "fr": ["un chien .", "l&apos; os"],
    },
    "validation": {"en": ["a man ."], "fr": ["un homme ."]},
    "test": {"en": ["snow ."], "fr": ["la neige ."]},
}


class Network:
    """Stands in for `datasets`: serves SMALL, and counts what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.error: Exception | None = None
        self.lines = json.loads(json.dumps(SMALL))

    def load_dataset(self, kind: str, data_files: dict[str, str]) -> dict[str, Any]:
        assert kind == "text"
        self.calls.append(data_files)
        if self.error:
            raise self.error
        language = data_files["train"].rsplit(".", 1)[1]
        return {part: {"text": iter(self.lines[part][language])} for part in data_files}


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network()
    module = types.ModuleType("datasets")
    module.load_dataset = network.load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    sizes = {
        part: (
            len(both["en"]),
            {name: sum(len(line) + 1 for line in both[name]) for name in both},
        )
        for part, both in SMALL.items()
    }
    monkeypatch.setattr(corpora, "EXPECTED", sizes)
    return network


def tiny() -> Translation:
    pair = Pair(("hi",), ("salut",), frozenset(), frozenset())
    return Translation("tiny", [pair], [pair], [pair])


# ---------------------------------------------------------------------- with a network


def test_multi30k_comes_as_pairs_of_tokens(network: Network, tmp_path: Path) -> None:
    found = load_translation(cache=tmp_path)
    assert found.name == "multi30k"
    assert [(p.source, p.target) for p in found.train] == [
        (("a", "dog", "."), ("un", "chien", ".")),
        (("two", '"', "cats", "."), ("l'", "os")),
    ]
    assert found.test[0].target == ("la", "neige", ".")
    assert not found.train[0].sure


def test_files_are_pinned_to_one_commit(network: Network, tmp_path: Path) -> None:
    load_translation(cache=tmp_path)
    urls = [url for call in network.calls for url in call.values()]
    assert len(set(urls)) == 6
    assert all("7bee46bc74186b4b6254603143610f730d40bf66" in url for url in urls)
    assert urls[0].endswith("/data/task1/tok/train.lc.norm.tok.en")


def test_the_kept_copy_needs_no_network(network: Network, tmp_path: Path) -> None:
    first = load_translation(cache=tmp_path)
    network.error = ConnectionError("no route")
    assert load_translation(cache=tmp_path, fallback=None) == first
    assert len(network.calls) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["multi30k-en-fr.json"]


@pytest.mark.parametrize("damage", ["cut", "changed", "not json", "other json"])
def test_a_damaged_copy_is_fetched_again(
    network: Network, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = load_translation(cache=tmp_path)
    copy = tmp_path / "multi30k-en-fr.json"
    text = copy.read_text(encoding="utf-8")
    copy.write_text(
        {
            "cut": text[: len(text) // 2],
            "changed": text.replace("chien", "chat"),
            "not json": "",
            "other json": "[]",
        }[damage],
        encoding="utf-8",
    )
    assert load_translation(cache=tmp_path, fallback=None) == first
    assert len(network.calls) == 4
    assert "is damaged; fetching the corpus again" in capsys.readouterr().out
    assert corpora.read_copy(copy) is not None


@pytest.mark.parametrize("loss", ["a row", "a character"])
def test_what_arrives_incomplete_is_refused_and_not_kept(
    network: Network, tmp_path: Path, loss: str
) -> None:
    if loss == "a row":
        network.lines["train"]["fr"].pop()
    else:
        network.lines["test"]["en"][0] = "snow"
    with pytest.raises(CorpusUnavailable, match=r"arrived damaged: (train|test) \("):
        load_translation(cache=tmp_path, fallback=None)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_leaves_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(corpora.os, "fsync", full)
    corpora.write_copy(tmp_path / "copy.json", SMALL)
    assert not list(tmp_path.iterdir())
    assert "No copy of the corpus was kept" in capsys.readouterr().out


def test_a_cache_that_cannot_be_written_stops_nothing(
    network: Network, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert load_translation(cache=tmp_path / "file", fallback=None).name == "multi30k"


def test_the_cache_is_where_the_system_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert corpora.cache_folder() == tmp_path / "course_utils"


# ------------------------------------------------------------------- without a network


def test_no_network_gives_the_fallback_and_a_sentence(
    network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network.error = ConnectionError("no route\nto host")
    assert load_translation(cache=tmp_path, fallback=tiny) == tiny()
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == (
        "Multi30k can't be reached (ConnectionError: no route to host). Going on with "
        "the corpus 'tiny' instead: 1 pairs to train on."
    )


def test_a_network_that_hangs_is_waited_for_only_so_long(
    network: Network,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    release = threading.Event()

    def hang(kind: str, data_files: dict[str, str]) -> None:
        release.wait(60)

    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", hang)
    try:
        assert load_translation(cache=tmp_path, fallback=tiny, timeout=0.05) == tiny()
    finally:
        release.set()
    assert "did not arrive within 0.05 s" in capsys.readouterr().out


def test_a_hanging_download_does_not_keep_the_program_alive() -> None:
    code = (
        "import threading; from course_utils.data.corpora import within\n"
        "try: within(0.05, threading.Event().wait)\n"
        "except TimeoutError: print('gave up')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "gave up\n")


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusUnavailable, match="pip install datasets"):
        load_translation(cache=tmp_path, fallback=None)


def test_a_package_that_datasets_lacks_is_named(
    network: Network, tmp_path: Path
) -> None:
    network.error = ImportError("HTTPFileSystem requires aiohttp")
    with pytest.raises(CorpusUnavailable, match=r"requires aiohttp\): pip install"):
        load_translation(cache=tmp_path, fallback=None)


def test_the_error_is_raised_where_no_fallback_is_wanted(
    network: Network, tmp_path: Path
) -> None:
    network.error = OSError("down")
    with pytest.raises(CorpusUnavailable, match=r"can't be reached \(OSError: down\)"):
        load_translation(cache=tmp_path, fallback=None)


def test_the_local_corpus_shares_no_sentence_between_its_parts() -> None:
    local = corpora.local_translation(n_train=3000, n_held_out=300)
    parts = [{p.source for p in part} for part in local[1:]]
    assert [len(part) for part in parts] == [3000, 300, 300]
    assert len(set.union(*parts)) == 3600
    assert local == corpora.local_translation(n_train=3000, n_held_out=300)
    assert local != corpora.local_translation(n_train=3000, n_held_out=300, seed=1)


def test_the_local_corpus_can_be_asked_for_by_name(
    monkeypatch: pytest.MonkeyPatch, network: Network
) -> None:
    monkeypatch.setattr(corpora, "local_translation", tiny)
    assert load_translation("grammar") == tiny()
    assert not network.calls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "wmt"}, "expected 'multi30k' or 'grammar'"),
        ({"target": "en"}, "expected one of fr, de"),
        ({"timeout": 0}, "timeout is 0"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        load_translation(**arguments, cache=tmp_path)


def test_importing_loads_neither_torch_nor_datasets() -> None:
    code = (
        "import sys, course_utils.data.corpora; "
        "assert not {'torch', 'datasets', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
