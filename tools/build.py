"""Build the site: execute the notebooks, stage the pages, run Jupyter Book.

    python -m tools.build book              all of it; only what changed is done again
    python -m tools.build execute [PATH …]  execute notebooks or folders of them, those
                                            of the site if none is named
    python -m tools.build site              build the pages from the executed notebooks
    python -m tools.build seeds 1 2 3       execute all notebooks with other seeds
    python -m tools.build links             try every link that leaves the site
    python -m tools.build serve             show the site on this machine
    python -m tools.build clean             delete everything that was built

The site is always built whole, in a folder of its own, and put in place when it is
complete: no page of an earlier build can survive in it, and an interrupted build leaves
the earlier site as it was.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import shutil
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks.dependencies import code_cells, digest, package_files
from tools.notebooks.execute import execute_and_report, forget_vanished, right_result
from tools.notebooks.io import ROOT, all_notebooks, dumps, read
from tools.notebooks.repo_links import unstamped
from tools.notebooks.toc import page_notebooks, page_sources

STAMP = ".made-from"  # inside the site: a digest of all that it was made from
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
IGNORED = (".ipynb_checkpoints", "__pycache__")


# ------------------------------------------------------------------ the pages


def with_outputs(source: NotebookNode, result: NotebookNode) -> NotebookNode:
    """The notebook as it is now, with the outputs of its execution.

    A page has the theme's own way to Colab and to the next page: it needs no links.
    """
    for cell, ran in zip(code_cells(source), code_cells(result), strict=True):
        cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
    source.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return unstamped(source)


def stage(root: Path, staged: Path, executed: bool = True) -> None:
    """Put all that Jupyter Book reads into one folder, executed notebooks or not."""
    shutil.rmtree(staged, ignore_errors=True)
    not_notebooks = shutil.ignore_patterns("*.ipynb", *IGNORED)
    shutil.copytree(root / "book", staged / "book", ignore=not_notebooks)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, staged / name)
    for source in page_sources(root):
        page = staged / source.relative_to(root)
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".ipynb":
            shutil.copy(source, page)
            continue
        if not executed:
            page.write_text(dumps(unstamped(read(source))), encoding="utf-8")
            continue
        result = right_result(source, root, root / "_build" / "executed")
        if result is None:
            raise ValueError(
                f"{source.relative_to(root)} has no result of its present code; "
                "execute the notebooks first (python -m tools.build execute)."
            )
        page.write_text(dumps(with_outputs(read(source), result)), encoding="utf-8")


def made_from(root: Path, staged: Path) -> str:
    """A digest of everything that the site is made from."""
    files = sorted(p for p in staged.rglob("*") if p.is_file())
    files += package_files(root)  # the reference pages are made from the docstrings
    files += sorted((ROOT / "tools").rglob("*.py"))  # Sphinx extensions and this file
    files += [root / "requirements.txt"]
    lines = [f"{os.path.relpath(p, root)} {digest(p.read_bytes())}" for p in files]
    return digest("\n".join(lines))


def jupyter_book(root: Path, staged: Path, work: Path, *options: str) -> bool:
    """Run Jupyter Book on the staged pages; say whether it succeeded."""
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(staged)]
    command += ["--path-output", str(work), *options]
    quiet = subprocess.DEVNULL if "-q" in options else None
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, env=environment, cwd=root, stdout=quiet)
    return done.returncode == 0


def build_site(root: Path) -> bool:
    """Build every page with warnings as errors; say whether the site is right."""
    site, work = root / "_build" / "html", root / "_build" / "site"
    staged = root / "_build" / "stage"
    stage(root, staged)
    stamp = made_from(root, staged)
    if (site / STAMP).is_file() and (site / STAMP).read_text() == stamp:
        print("site: unchanged")
        return True
    print("site: building", flush=True)
    shutil.rmtree(work, ignore_errors=True)
    # Quiet: what goes wrong comes on stderr.
    if not jupyter_book(root, staged, work, "-W", "--keep-going", "-q"):
        print("site: NOT built; every warning above is an error", file=sys.stderr)
        return False
    new, old = work / "_build" / "html", root / "_build" / "html.old"
    (new / STAMP).write_text(stamp)
    shutil.rmtree(old, ignore_errors=True)
    if site.exists():
        os.replace(site, old)
    os.replace(new, site)
    shutil.rmtree(old, ignore_errors=True)
    return True


# ------------------------------------------------------------------ commands


def book(root: Path, jobs: int) -> bool:
    """Execute and build, and say where to open the site."""
    sources = page_notebooks(root)
    executed = root / "_build" / "executed"
    forget_vanished(root, executed)
    if not execute_and_report(sources, root, executed, jobs):
        print("site: NOT built, because a notebook failed", file=sys.stderr)
        return False
    if not build_site(root):
        return False
    print(f"open {root / '_build' / 'html' / 'index.html'}, or run: make serve")
    return True


def notebooks_in(paths: list[Path]) -> list[Path]:
    """The notebooks that these paths name: files, or folders of them."""
    found = [sorted(p.glob("*.ipynb")) if p.is_dir() else [p] for p in paths]
    return [path.resolve() for each in found for path in each]


def seeds(root: Path, numbers: list[int], jobs: int) -> bool:
    """Execute chapters and solutions with other seeds, apart from the site's."""
    sources = [p for p in all_notebooks(root) if p.parent.name != "exercises"]
    wrong = []
    for number in numbers:
        print(f"COURSE_SEED={number}")
        os.environ["COURSE_SEED"] = str(number)
        out = root / "_build" / "seeds" / str(number)
        if not execute_and_report(sources, root, out, jobs):
            wrong.append(str(number))
    said = f"failed with seeds {', '.join(wrong)}" if wrong else "all passed"
    print(f"seeds {' '.join(map(str, numbers))}: {said}")
    return not wrong


def links(root: Path) -> bool:
    """Try every link that leaves the site; the notebooks are not executed for it."""
    work = root / "_build" / "links"
    stage(root, work / "stage", executed=False)
    return jupyter_book(root, work / "stage", work, "--builder", "linkcheck")


def serve(root: Path, port: int) -> bool:
    """Show the site on this machine until Ctrl-C."""
    site = root / "_build" / "html"
    if not site.is_dir():
        print("there is no site yet; build it with: make book", file=sys.stderr)
        return False
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(site)
    )
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise ValueError(
            f"port {port} can't be used ({error.strerror}); choose another: "
            f"make serve PORT={port + 1}"
        ) from error
    with server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        server.serve_forever()
    return True


def clean(root: Path) -> bool:
    """Delete what was built and cached; the installed environment stays."""
    caches = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
    for name in ("_build", *caches):
        shutil.rmtree(root / name, ignore_errors=True)
    return True


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m tools.build")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 2, help="notebooks at a time"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("book", "site", "links", "clean"):
        commands.add_parser(name)
    execute = commands.add_parser("execute")
    execute.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    execute.add_argument("--junitxml", type=Path, help="count the cells in this file")
    commands.add_parser("seeds").add_argument("numbers", nargs="+", type=int)
    commands.add_parser("serve").add_argument("--port", type=int, default=8000)
    asked = parser.parse_args()
    if asked.jobs < 1:
        parser.error(f"--jobs is {asked.jobs}, expected 1 or more")
    root = asked.root.resolve()
    try:
        match asked.command:
            case "book":
                right = book(root, asked.jobs)
            case "execute":
                paths = notebooks_in(asked.paths) or page_notebooks(root)
                out = root / "_build" / "executed"
                junit = asked.junitxml
                right = execute_and_report(paths, root, out, asked.jobs, junit)
            case "site":
                right = build_site(root)
            case "seeds":
                right = seeds(root, asked.numbers, asked.jobs)
            case "links":
                right = links(root)
            case "serve":
                right = serve(root, asked.port)
            case _:
                right = clean(root)
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
