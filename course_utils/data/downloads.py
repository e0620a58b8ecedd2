"""Fetch the files of the real GPT-2: half a gigabyte, checked, resumed if it breaks.

    folder = fetch_gpt2()  # None without a network, and a sentence says so

A file gets its name only when its bytes have the published checksum; until then it is
`<name>.part`, and the next try goes on behind what that holds.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

from course_utils.data.corpora import cache_folder

GPT2_ADDRESS = (
    "https://huggingface.co/openai-community/gpt2/resolve/"
    "607a30d783dfa663caf39e06633721c8d4cfcd7e"
)
"""One commit of the public repository; what is there can't change."""
CHUNK = 1 << 20  # bytes read at a time
TRIES = 5  # of a connection that breaks again and again


class PublishedFile(NamedTuple):
    """A file as it was published: its bytes, and the SHA-256 of them."""

    size: int
    sha256: str


GPT2_FILES = {
    "config.json": PublishedFile(
        665, "0daed7749b4f02b8f76240d5444551d7b08712dab4d0adb8239c56ba823bb7b4"
    ),
    "vocab.json": PublishedFile(
        1_042_301, "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
    ),
    "merges.txt": PublishedFile(
        456_318, "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
    ),
    "model.safetensors": PublishedFile(
        548_105_171, "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"
    ),
}


class DownloadBroken(OSError):
    """A file did not arrive whole; the message says what to do."""


def fetch_gpt2(
    directory: str | Path | None = None,
    *,
    address: str = GPT2_ADDRESS,
    files: dict[str, PublishedFile] | None = None,
    timeout: float = 30.0,
) -> Path | None:
    """Return the folder with GPT-2's configuration, vocabulary, merges and weights.

    What is not there yet is fetched (550 MB), with a bar, and compared with its
    checksum. Without a network there is one sentence and None: the caller goes on.
    """
    folder = Path(directory) if directory else cache_folder() / "gpt2"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, published in (files or GPT2_FILES).items():
            if not (folder / name).is_file():
                fetch_file(f"{address}/{name}", folder / name, published, timeout)
    except (OSError, http.client.HTTPException) as error:
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        print(f"GPT-2's files can't be had now ({cause}); going on without them.")
        return None
    return folder


def fetch_file(
    url: str, path: Path, published: PublishedFile, timeout: float = 30.0
) -> None:
    """Fetch one file, going on where an earlier try broke off.

    After a break it tries again as long as each try brings something; bytes that fail
    the checksum are thrown away.
    """
    part = path.with_name(path.name + ".part")
    for _ in range(TRIES):
        before = part.stat().st_size if part.exists() else 0
        try:
            receive(url, part, published.size, timeout)
        except (OSError, http.client.HTTPException):
            after = part.stat().st_size if part.exists() else 0
            if after <= before:  # there is nothing to hope for
                raise
        if part.stat().st_size < published.size:
            continue
        if has_checksum(part, published):
            os.replace(part, path)
            return
        part.unlink()  # an earlier part may have been of another file: from the start
    left = part.stat().st_size if part.exists() else 0
    raise DownloadBroken(
        f"{path.name} did not arrive whole in {TRIES} tries, {left:,} of "
        f"{published.size:,} bytes are kept; call again to go on"
    )


def receive(url: str, part: Path, size: int, timeout: float) -> None:
    """Add to `part` what is missing of `size` bytes, as far as the connection holds."""
    from tqdm.auto import tqdm

    have = part.stat().st_size if part.exists() else 0
    if have >= size:
        return
    asked = urllib.request.Request(url, headers={"Range": f"bytes={have}-"})
    with urllib.request.urlopen(asked, timeout=timeout) as answer:
        if answer.status != 206:  # a server that knows no ranges sends all of it
            have = 0
        quiet = os.environ.get("COURSE_PROGRESS", "").strip() == "0"
        with (
            open(part, "ab" if have else "wb") as file,
            tqdm(
                desc=part.stem,
                total=size,
                initial=have,
                unit="B",
                unit_scale=True,
                disable=quiet,
            ) as bar,
        ):
            while have < size and (block := answer.read(min(CHUNK, size - have))):
                file.write(block)
                have += len(block)
                bar.update(len(block))


def has_checksum(path: Path, published: PublishedFile) -> bool:
    """Say whether a file holds the published bytes, and no others."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return digest == published.sha256
