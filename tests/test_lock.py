"""requirements.txt holds exactly what pyproject.toml asks for."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, distributions, packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.lock import EXTRA, GPU_LIBRARIES, LOCK, arrange
from tools.notebooks.io import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OURS = ("course_utils", "tools", "benchmarks", "tests")


def asked(extra: str) -> list[Requirement]:
    """What pyproject.toml names for an extra, other extras of the course resolved."""
    texts = PROJECT["optional-dependencies"][extra] if extra else ()
    named: list[Requirement] = []
    for requirement in map(Requirement, texts or PROJECT["dependencies"]):
        if requirement.name == PROJECT["name"]:
            named += [r for more in requirement.extras for r in asked(more)]
        else:
            named.append(requirement)
    return named


def direct() -> list[Requirement]:
    """All that the lock is made from."""
    return asked("") + asked(EXTRA)


def applies(requirement: Requirement, extra: str = "") -> bool:
    return not requirement.marker or requirement.marker.evaluate({"extra": extra})


def pins() -> dict[str, Requirement]:
    """The lines of the lock that hold on this machine."""
    lines = LOCK.read_text("utf-8").splitlines()
    every = [Requirement(line) for line in lines if not line.startswith("#")]
    return {canonicalize_name(r.name): r for r in every if applies(r)}


def pinned(requirement: Requirement) -> Version:
    (specifier,) = requirement.specifier
    assert specifier.operator == "==", f"{requirement} is no exact version"
    return Version(specifier.version)


def reachable() -> set[str]:
    """All that the direct requirements need here, by what is installed."""
    seen: set[tuple[str, str]] = set()
    waiting = [(r.name, extra) for r in direct() for extra in ("", *r.extras)]
    while waiting:
        name, extra = waiting.pop()
        name = canonicalize_name(name)
        if (name, extra) in seen or name.startswith(GPU_LIBRARIES) or name == "triton":
            continue
        seen.add((name, extra))
        for needed in map(Requirement, distribution(name).requires or ()):
            if applies(needed, extra):
                waiting += [(needed.name, more) for more in ("", *needed.extras)]
    return {name for name, _ in seen}


def test_every_direct_requirement_is_locked_at_a_version_it_allows():
    locked = pins()
    for requirement in direct():
        pin = locked[canonicalize_name(requirement.name)]
        assert pinned(pin) in requirement.specifier, f"{pin} is not {requirement}"


def test_the_lock_holds_what_is_needed_and_nothing_else():
    needed, locked = reachable(), set(pins())
    assert needed == locked, (
        f"needed and not locked: {sorted(needed - locked)}; locked and not needed: "
        f"{sorted(locked - needed)}; make lock writes requirements.txt again"
    )


def test_what_is_installed_is_what_is_locked():
    versions = {canonicalize_name(d.name): d.version for d in distributions()}
    wrong = [
        f"{name} {versions.get(name, 'missing')}, expected {pinned(pin)}"
        for name, pin in pins().items()
        if versions.get(name, "missing").partition("+")[0] != str(pinned(pin))
    ]
    assert not wrong, f"installed: {'; '.join(wrong)}; make setup installs the pins"


def imported() -> Iterator[tuple[str, str]]:
    """Each package that the project's own code imports, and the file that does."""
    for path in [p for folder in OURS for p in sorted((ROOT / folder).rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            yield from ((name.partition(".")[0], str(path)) for name in names)


def test_every_package_that_the_code_imports_is_named_in_pyproject():
    named = {canonicalize_name(r.name) for r in direct() + asked("corpora")}
    providers = packages_distributions()
    local = {p.stem for p in (ROOT / "tests").rglob("*") if p.suffix in ("", ".py")}
    missing = {
        f"{module} in {where}"
        for module, where in imported()
        if module not in sys.stdlib_module_names
        and module not in local.union(OURS, {"google"})  # Colab brings its own
        and not named & {canonicalize_name(n) for n in providers.get(module, [module])}
    }
    assert not missing, sorted(missing)


# ------------------------------------------------------------------ how it is written


def test_pytorch_comes_first_without_its_build_or_its_gpu_libraries():
    lines = [
        "# by uv",
        "numpy==2.0",
        "nvidia-cublas==13.1 ; sys_platform == 'linux'",
        "torch==2.13.0 ; sys_platform == 'darwin'",
        "torch==2.13.0+cpu ; sys_platform != 'darwin'",
        "triton==3.7.1",
        "zipp==4.1",
    ]
    text = arrange(lines)
    written = [line for line in text.splitlines() if not line.startswith("#")]
    assert written == ["torch==2.13.0", "numpy==2.0", "zipp==4.1"]
    assert arrange(text.splitlines()) == text


def test_two_versions_of_pytorch_are_refused():
    with pytest.raises(ValueError, match="2 versions of PyTorch"):
        arrange(["torch==2.13.0 ; sys_platform == 'darwin'", "torch==2.14.0"])
