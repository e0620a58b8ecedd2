"""Every command that a page, a workflow or a hook names is there."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import check
from tools.notebooks.io import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "book").glob("*.md"))
SCRIPTS = [*PAGES, *WORKFLOWS, ROOT / ".ci" / "run"]
HOOKS = ROOT / ".pre-commit-config.yaml"
COMMANDS = [*SCRIPTS, HOOKS, ROOT / "Makefile"]


def makefile() -> str:
    return (ROOT / "Makefile").read_text("utf-8")


def targets() -> dict[str, str]:
    """Each target of the Makefile with what `make help` says of it."""
    lines = re.findall(r"^([a-z-]+):[^=#\n]*(?:## (.*))?$", makefile(), re.MULTILINE)
    return dict(lines)


def jobs(name: str) -> dict[str, Any]:
    path = ROOT / ".github" / "workflows" / name
    return yaml.safe_load(path.read_text("utf-8"))["jobs"]


def steps(job: dict[str, Any], key: str) -> list[str]:
    return [step[key] for step in job["steps"] if key in step]


def code(text: str) -> str:
    """What stands as code in a page; all of a file that is no page."""
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return "\n".join([*fenced, *re.findall(r"`([^`\n]+)`", text)])


def read_commands(path: Path) -> str:
    text = path.read_text("utf-8")
    return code(text) if path.suffix == ".md" else text


def runs(module: str) -> bool:
    """Whether `python -m module` does anything; importing alone is nothing."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    if spec.submodule_search_locations:
        return importlib.util.find_spec(f"{module}.__main__") is not None
    return '__name__ == "__main__"' in Path(spec.origin).read_text("utf-8")


# ------------------------------------------------------------- what is named exists


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_every_make_target_that_is_named_exists(path: Path):
    named = set(re.findall(r"\bmake (?:[A-Z]+=\S+ )*([a-z-]+)", read_commands(path)))
    unknown = named - set(targets())
    assert not unknown, (
        f"{path.name} says make {sorted(unknown)}; `make help` lists all"
    )


@pytest.mark.parametrize("path", COMMANDS, ids=lambda p: p.name)
def test_every_module_that_is_run_exists(path: Path):
    # `$(RUN) x` is how the Makefile says `python -m x`.
    modules = re.findall(
        r"(?:python[\d.]* -m|\$\(RUN\)) ([a-z][\w.]*)", read_commands(path)
    )
    unknown = {name for name in modules if not runs(name)}
    assert not unknown, (
        f"{path.name} says python -m {sorted(unknown)}, which runs nothing"
    )


def test_pages_and_workflows_do_name_commands():
    text = "\n".join(read_commands(path) for path in COMMANDS)
    assert len(re.findall(r"\bmake [a-z]", text)) > 10
    assert len(re.findall(r"python -m [a-z]", text)) > 10


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_make_help_lists_every_target_with_a_sentence():
    listed = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    shown = dict(re.findall(r"^  make ([a-z-]+) +(\S.*)$", listed, re.MULTILINE))
    assert shown == targets()
    assert all(shown.values())


def test_every_target_is_phony():
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile(), re.MULTILINE)
    assert set(phony.split()) == set(targets())


def test_every_hook_runs_on_any_system():
    config = yaml.safe_load(HOOKS.read_text("utf-8"))
    entries = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    assert entries
    assert [e for e in entries if not e.startswith(("python -m ", "python -c "))] == []


def test_the_hooks_and_make_quick_check_the_same():
    hooks = HOOKS.read_text("utf-8")
    for step in check.LINT:
        assert step.command[2] in hooks, f"no hook runs {step.command[2]}"


# ---------------------------------------------------------------------- the workflows


def test_a_site_is_published_only_after_all_tests_and_is_the_one_they_tested():
    test, deploy = jobs("test.yml")["test"], jobs("test.yml")["deploy"]
    assert deploy["needs"] == "test"
    assert steps(deploy, "run") == []
    assert [use.split("@")[0] for use in steps(deploy, "uses")] == [
        "actions/deploy-pages"
    ]
    order = [step.get("run") or step["uses"].split("@")[0] for step in test["steps"]]
    assert order.index(".ci/run") < order.index("actions/upload-pages-artifact")
    assert {
        s["with"]["path"] for s in test["steps"] if "upload" in s.get("uses", "")
    } == {"_build/html"}


def test_no_other_workflow_publishes():
    publishing = [p.name for p in WORKFLOWS if "deploy-pages" in p.read_text("utf-8")]
    assert publishing == ["test.yml"]


def test_the_fast_job_comes_before_every_other():
    every = jobs("test.yml")
    assert "needs" not in every["quick"]
    assert "make quick" in steps(every["quick"], "run")
    assert every["test"]["needs"] == every["systems"]["needs"] == "quick"


def test_windows_and_macos_run_what_make_quick_runs():
    systems = jobs("test.yml")["systems"]
    assert systems["strategy"]["matrix"]["os"] == ["windows-latest", "macos-latest"]
    recipe = makefile().split("\nquick:")[1].split("\n\n")[0]
    *_, last = steps(systems, "run")
    assert last.removeprefix("python -m ") in recipe
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in steps(systems, "run")[:-1]:
        assert command.replace("python -m", r".venv\Scripts\python -m") in readme


def test_every_action_is_used_in_one_version():
    versions: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for name, version in re.findall(r"uses: (\S+)@(\S+)", path.read_text("utf-8")):
            versions.setdefault(name, set()).add(version)
    assert versions
    assert {name: v for name, v in versions.items() if len(v) > 1} == {}
