"""An environment with Colab's versions, to try the notebooks as a reader there does.

    python -m tools.colab

What Colab has is installed. What it lacks and the course needs is laid beside it as
wheels: the first code cell of a notebook installs it from there, with no network.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

from tools.notebooks.io import ROOT

# Of Colab's published list (August 2026). PyTorch is the course's own: Colab's is built
# for CUDA.
COLAB = [
    f"torch=={version('torch').partition('+')[0]}",
    "numpy==2.1.3",
    "matplotlib==3.10.0",
    "ipywidgets==7.7.1",
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "einops==0.8.2",
    "scikit-learn==1.6.1",
    "tqdm==4.67.1",
    "lxml",
    "regex",
    "tabulate",
]
# Colab's own pages can't be had: the tests open these, whose widgets are as old. (The
# extension's later versions fail to make an `Output`.)
PAGES = ["notebook==6.5.7", "widgetsnbextension==3.6.6"]
NOT_ON_COLAB = ["sacrebleu", "portalocker", "colorama"]
BUILDS_THE_COURSE = ["setuptools>=77"]
ENVIRONMENT = ROOT / ".venv-colab"
STAMP, WHEELS = ".installed", "wheels"


def colab_python(environment: Path) -> Path:
    """The Python of the environment."""
    return environment / "bin" / "python"


def pip(environment: Path, *arguments: str, quiet: bool = False) -> bool:
    """Run the environment's pip; say whether it succeeded."""
    command = [str(colab_python(environment)), "-m", "pip", *arguments]
    hidden = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, stdout=hidden, stderr=hidden).returncode == 0


def available(environment: Path, pin: str) -> str:
    """The pin, or the bare name where there is no wheel of it for this Python."""
    probe = ("install", "--dry-run", "--no-deps", "--only-binary", ":all:", pin)
    if pip(environment, *probe, quiet=True):
        return pin
    name = pin.partition("==")[0]
    print(f"{pin} has no wheel for Python {platform.python_version()}: newest {name}")
    return name


def make(environment: Path) -> bool:
    """Make the environment unless it is there, complete and of these versions."""
    wanted = "\n".join([platform.python_version(), *COLAB, *PAGES, *NOT_ON_COLAB, ""])
    stamp = environment / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return True
    print(f"installing Colab's versions into {environment}", flush=True)
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=True)
    pins = [available(environment, pin) for pin in COLAB + PAGES]
    wheels = ["download", "-q", "--no-deps", "-d", str(environment / WHEELS)]
    done = pip(environment, "install", "-q", *pins) and pip(
        environment, *wheels, *NOT_ON_COLAB, *BUILDS_THE_COURSE
    )
    if done:
        stamp.write_text(wanted)
    return done


def main() -> int:
    """Make the environment of this checkout."""
    return 0 if make(ENVIRONMENT) else 1


if __name__ == "__main__":
    sys.exit(main())
