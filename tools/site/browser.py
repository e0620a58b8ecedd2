"""What printing the book and testing the site share: a browser, and the site served."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import io
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

COMPRESSED = {".html", ".css", ".js", ".svg", ".json", ".txt", ".inv"}
LAUNCH = ["--no-sandbox", "--disable-gpu"]  # Chromium's options, also as root
# An interactive draws for the first time when the page has nothing else to do.
DRAWN = """[...document.querySelectorAll(".course-widget")].every(
  (widget) => widget.dataset.state && widget.querySelector("svg").children.length)"""


def chromium() -> str | None:
    """The Chromium of this machine, by whichever name it has; None if it has none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


class Compressed(Quiet):
    """Serves text as public hosts do: compressed, and to be kept for ten minutes."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        body = gzip.compress(path.read_bytes())
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        return io.BytesIO(body)


@contextlib.contextmanager
def served(site: Path, compressed: bool = False) -> Iterator[str]:
    """The site's address while it is served on this machine."""
    kind = Compressed if compressed else Quiet
    handler = functools.partial(kind, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
