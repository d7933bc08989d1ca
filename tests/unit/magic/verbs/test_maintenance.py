from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.magic.command_line import main
from tests.unit.magic.conftest import Lance


@pytest.fixture(autouse=True)
def opened(lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")


def test_space_names_every_byte(lance: Lance, uri: str) -> None:
    found = lance("space")
    sizes = {one["bytes of"]: one["size"] for one in found.data}
    stored = sum(one.stat().st_size for one in Path(uri).rglob("*") if one.is_file())
    kinds = ("current", "old", "orphan", "bookkeeping", "other")
    assert sum(sizes[kind] for kind in kinds) == stored
    assert "tag late alone" in sizes


def test_the_doctor_finds_damage_and_says_so_to_a_shell(
    lance: Lance, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lance("doctor").exit_code == 0
    victim = next(Path(uri).glob("data/*.lance"))
    victim.write_bytes(victim.read_bytes()[:50])
    assert main(["doctor", uri, "--quick"]) == 1
    assert victim.name in capsys.readouterr().out


def test_a_compaction_makes_a_version_when_there_is_something_to_do(
    lance: Lance, shell: InteractiveShell
) -> None:
    before = shell.user_ns["ds"].version
    lance("compact")
    assert len(shell.user_ns["ds"].get_fragments()) == 1
    assert shell.user_ns["ds"].version > before
    assert "Nothing to compact" in lance("compact").picture.text


def test_a_clean_up_deletes_only_when_told_to(
    lance: Lance, shell: InteractiveShell, uri: str
) -> None:
    before = sorted(Path(uri).rglob("*"))
    found = lance("clean --keep 1")
    assert "nothing was deleted" in found.picture.text
    assert sorted(Path(uri).rglob("*")) == before
    listed = json.loads(str(lance("clean --keep 1 --json")))
    assert {one["kind"] for one in listed} >= {"Manifest"} or listed
    lance("clean --keep 1 --really")
    assert shell.user_ns["ds"].version_numbers() == [3, 7]


def test_an_unfinished_branch_is_listed_as_such_and_left_out_of_the_graph(
    lance: Lance, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(Path(uri) / "tree" / "dev" / "_versions")
    assert main(["branch", uri]) == 0
    assert "dev is unfinished" in (said := capsys.readouterr().out)
    assert "create it again from main:3" in said
    assert "branch delete dev" in said
    assert main(["log", uri, "--graph"]) == 0
    assert "dev" not in capsys.readouterr().out
