"""Every line of the README is run on the demo dataset, and its answer is checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT

pytestmark = pytest.mark.interop
README = (ROOT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_COMMANDS = re.compile(r"`(lance-nb \w+ demo\.lance[^`]*)`")
_LINES = re.compile(r"`(%lance [^`]+)`")


def test_the_code_gives_the_answers_that_are_shown(demo: Path) -> None:
    ((code, answer),) = _BLOCK.findall(README)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=demo.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, answer), done.stderr


def test_the_commands_work(demo: Path) -> None:
    commands = _COMMANDS.findall(README)
    assert commands
    for command in commands:
        words = [sys.executable, "-c", _MAIN, *command.split()[1:]]
        done = subprocess.run(words, cwd=demo.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "reviewed" in done.stdout


_MAIN = "import sys; from lance_nb.magic.command_line import main; sys.exit(main())"


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


def test_links_and_pictures_lead_to_files() -> None:
    places = re.findall(r"\]\(([^)#:\s]+)\)", README)
    assert len(places) > 20
    assert [one for one in places if not (ROOT / one).is_file()] == []


def test_the_readme_is_one_screen_and_names_its_make_targets() -> None:
    assert len(README.splitlines()) < 100
    targets = set(re.findall(r"`make ([a-z-]+)`", README))
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets <= there
