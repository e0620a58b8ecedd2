"""GPT-2's files arrive whole, go on where they broke, or are missed in a sentence."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from course_utils.data import downloads
from course_utils.data.downloads import GPT2_FILES, PublishedFile, fetch_gpt2

WEIGHTS = bytes(i * i % 251 for i in range(100_000))
CONTENT = {"config.json": b'{"model_type": "gpt2"}', "model.safetensors": WEIGHTS}
FILES = {
    name: PublishedFile(len(content), hashlib.sha256(content).hexdigest())
    for name, content in CONTENT.items()
}


class Server(BaseHTTPRequestHandler):
    """Serves CONTENT as told: with ranges or without, cut, with wrong bytes."""

    asked: ClassVar[list[tuple[str, str | None]]] = []
    cut: ClassVar[list[int]] = []  # bytes after which the next answers break off
    knows_ranges = True
    spoilt = 0  # answers whose last byte is another
    redirects = False

    def do_GET(self) -> None:
        name, cls = self.path.rpartition("/")[2], type(self)
        if cls.redirects and not self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", f"/moved/{name}")
            self.end_headers()
            return
        content = CONTENT[name]
        asked = self.headers.get("Range")
        cls.asked.append((name, asked))
        first = int(asked[6:-1]) if asked and cls.knows_ranges else 0
        if cls.spoilt and name == "model.safetensors":
            cls.spoilt -= 1
            content = content[:-1] + b"!"
        body = content[first:]
        self.send_response(206 if asked and cls.knows_ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        stop = cls.cut.pop(0) if cls.cut and name == "model.safetensors" else None
        self.wfile.write(body[:stop])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[type[Server]]:
    class Fresh(Server):
        asked: ClassVar = []
        cut: ClassVar = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Fresh) as http:
        Fresh.address = f"http://127.0.0.1:{http.server_port}"  # type: ignore[attr-defined]
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield Fresh
        http.shutdown()


def fetched(server: type[Server], folder: Path) -> Path | None:
    return fetch_gpt2(folder, address=server.address, files=FILES)  # type: ignore[attr-defined]


def whole(folder: Path | None) -> bool:
    return folder is not None and all(
        (folder / name).read_bytes() == content for name, content in CONTENT.items()
    )


def test_the_files_arrive_whole_and_are_fetched_once(server, tmp_path):
    assert whole(fetched(server, tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(CONTENT)
    n_asked = len(server.asked)
    assert fetched(server, tmp_path) == tmp_path
    assert len(server.asked) == n_asked


def test_a_redirection_is_followed_with_its_range(server, tmp_path):
    server.redirects, server.cut = True, [30_000]
    assert whole(fetched(server, tmp_path))
    assert server.asked[-1] == ("model.safetensors", "bytes=30000-")


def test_a_connection_that_breaks_goes_on_behind_what_it_brought(server, tmp_path):
    server.cut = [30_000, 20_000]
    assert whole(fetched(server, tmp_path))
    ranges = [asked for name, asked in server.asked if name == "model.safetensors"]
    assert ranges == ["bytes=0-", "bytes=30000-", "bytes=50000-"]


def test_the_next_call_goes_on_too(server, tmp_path, capsys):
    server.cut = [10_000] * downloads.TRIES
    assert fetched(server, tmp_path) is None
    assert "50,000 of 100,000 bytes are kept; call again" in capsys.readouterr().out
    assert not (tmp_path / "model.safetensors").exists()
    assert whole(fetched(server, tmp_path))
    assert server.asked[-1] == ("model.safetensors", "bytes=50000-")


def test_wrong_bytes_never_get_the_files_name(server, tmp_path, capsys):
    server.spoilt = downloads.TRIES
    assert fetched(server, tmp_path) is None
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]
    assert "did not arrive whole" in capsys.readouterr().out


def test_wrong_bytes_are_fetched_again(server, tmp_path):
    server.spoilt = 1
    assert whole(fetched(server, tmp_path))


def test_a_part_of_another_file_is_thrown_away(server, tmp_path):
    (tmp_path / "model.safetensors.part").write_bytes(b"x" * 70_000)
    assert whole(fetched(server, tmp_path))
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors.part").write_bytes(b"x" * 170_000)
    assert whole(fetched(server, tmp_path))


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    server.knows_ranges, server.cut = False, [30_000]
    assert whole(fetched(server, tmp_path))


def test_without_a_network_there_is_one_sentence_and_none(tmp_path, capsys):
    nowhere = "http://127.0.0.1:9"  # nobody listens there
    assert fetch_gpt2(tmp_path, address=nowhere, files=FILES) is None
    said = capsys.readouterr().out
    assert said.startswith("GPT-2's files can't be had now (")
    assert said.endswith("going on without them.\n")
    assert said.count("\n") == 1


def test_what_is_there_needs_no_network(tmp_path):
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    nowhere = "http://127.0.0.1:9"
    assert fetch_gpt2(tmp_path, address=nowhere, files=FILES) == tmp_path


def test_a_folder_that_cant_be_written_to_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert fetch_gpt2(tmp_path / "file" / "gpt2", files=FILES) is None
    assert "can't be had now" in capsys.readouterr().out


def test_every_published_file_has_a_checksum_of_its_own():
    assert set(GPT2_FILES) == {
        "config.json",
        "vocab.json",
        "merges.txt",
        "model.safetensors",
    }
    digests = {file.sha256 for file in GPT2_FILES.values()}
    assert len(digests) == 4
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)
