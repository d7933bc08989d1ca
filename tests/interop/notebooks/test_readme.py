"""Every line of the README is run, and its answer is checked."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.source import ROOT

pytestmark = pytest.mark.interop
README = (ROOT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_SHELL = re.compile(r"```\n(.*?)```", re.DOTALL)
_COMMANDS = re.compile(r"`(lance-nb \w+ demo\.lance[^`]*)`")
_LINES = re.compile(r"`(%lance [^`]+)`")
_PICTURE = re.compile(r"!\[[^]]+\]\((\S+)\)")
_RUN_CELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from lance_nb.explorer.app import Explorer

cell = InteractiveShell().run_cell(sys.argv[1])
cell.raise_error()
assert isinstance(cell.result, Explorer)
"""
_MAIN = "import sys; from lance_nb.magic.command_line import main; sys.exit(main())"


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr + result.stdout
    return result.stdout


def test_the_code_is_one_cell_that_gives_the_answers_shown_in_an_empty_folder(
    tmp_path: Path,
) -> None:
    ((code, answer),) = _BLOCK.findall(README)
    assert run(tmp_path, _RUN_CELL, code).startswith(answer)


def test_the_other_references_in_a_comment_of_the_code_work(demo: Path) -> None:
    import lance_nb

    dataset = lance_nb.dataset(str(demo))
    assert '# a tag, a number, ("relabel", None) for a branch' in README
    assert dataset.checkout_version(3).version == 3
    assert dataset.checkout_version(("relabel", None)).version == 11


def test_the_first_commands_clone_the_repository_and_run_targets_of_make() -> None:
    clone, cd, *makes = (
        line.split("#")[0].split() for line in _SHELL.findall(README)[0].splitlines()
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert clone == ["git", "clone", project["urls"]["Repository"]]
    assert cd == ["cd", clone[-1].rpartition("/")[2]]
    assert makes == [["make", "lab"], ["make", "test"]]
    for command in makes:
        subprocess.run([*command, "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_the_commands_work(demo: Path) -> None:
    commands = _COMMANDS.findall(README)
    assert commands
    for command in commands:
        assert "reviewed" in run(demo.parent, _MAIN, *command.split()[1:])


def test_the_lines_of_the_magic_work(demo: Path) -> None:
    from lance_nb.magic.context import MagicContext
    from lance_nb.magic.registry import parse

    context = MagicContext()
    context.open(str(demo))
    lines = _LINES.findall(README)
    assert lines
    for line in lines:
        request = parse(line.removeprefix("%lance "))
        assert request.verb.run(context, request.arguments) is not None


def test_the_picture_moves_and_is_small() -> None:
    (name,) = _PICTURE.findall(README)
    picture = (ROOT / name).read_bytes()
    assert picture[:4] + picture[8:12] == b"RIFFWEBP"
    assert 10 <= picture.count(b"ANMF") <= 40
    assert len(picture) < 1_500_000


def test_the_readme_is_one_screen() -> None:
    assert len(README.splitlines()) < 60
