"""Write requirements.txt: one exact version of all that pyproject.toml asks for.

    python -m tools.lock              keeps the versions that are there, where it can
    python -m tools.lock --upgrade    takes the newest ones

uv resolves for every platform and Python at once, so that one file serves Linux, macOS
and Windows. (`make lock` installs uv; nothing else needs it.)
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

from tools.notebooks.io import ROOT

LOCK = ROOT / "requirements.txt"
EXTRA = "dev"
HEADER = """\
# Exact versions of all that builds, runs and tests the course, made by `make lock` from
# the extra `dev` of pyproject.toml: edit that one. The course itself asks for less, and
# loosely. PyTorch stands first, without the mark of a build: pip decides whether it is
# the one for CPUs or the one for GPUs, which brings its own libraries.
"""
GPU_LIBRARIES = ("nvidia-", "cuda-", "triton=")


def resolve(*options: str) -> list[str]:
    """Ask uv for the versions, preferring those of requirements.txt."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml"]
    settings = ["--universal", "--python-version", "3.11", "--no-header"]
    output = ["--no-annotate", "--quiet", "--output-file", str(LOCK)]
    subprocess.run(
        [*command, "--extra", EXTRA, *settings, *output, *options], cwd=ROOT, check=True
    )
    return LOCK.read_text(encoding="utf-8").splitlines()


def arrange(lines: list[str]) -> str:
    """Put PyTorch first, without its build, and leave its GPU libraries to it."""
    pins = [
        re.sub(r"^(torch==[^+ ]+)\S*.*", r"\1", line)
        for line in lines
        if line and not line.startswith(("#", *GPU_LIBRARIES))
    ]
    torch = {pin for pin in pins if pin.startswith("torch==")}
    if len(torch) != 1:
        raise ValueError(
            f"uv chose {len(torch)} versions of PyTorch, {sorted(torch)}; expected one "
            "for all platforms: bound it in pyproject.toml."
        )
    return HEADER + "\n".join([*torch, *(p for p in pins if p not in torch)]) + "\n"


def main() -> int:
    """Read the command line and write the lock."""
    parser = argparse.ArgumentParser(prog="python -m tools.lock")
    parser.add_argument("--upgrade", action="store_true", help="take newest versions")
    options = ["--upgrade"] if parser.parse_args().upgrade else []
    before = LOCK.read_bytes()
    try:
        LOCK.write_text(arrange(resolve(*options)), encoding="utf-8")
    except (subprocess.CalledProcessError, ValueError) as error:
        LOCK.write_bytes(before)
        print(f"requirements.txt stays as it was: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
