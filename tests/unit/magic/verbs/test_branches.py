from __future__ import annotations

import json

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from tests.unit.magic.conftest import Lance


@pytest.fixture(autouse=True)
def opened(lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")


def ids(shell: InteractiveShell) -> list[int]:
    return sorted(shell.user_ns["ds"].to_table()["id"].to_pylist())


def test_a_branch_is_merged_after_a_look(lance: Lance, shell: InteractiveShell) -> None:
    before = ids(shell)
    found = json.loads(str(lance("merge dev --dry-run --key id --json")))
    assert found["version"] is None
    assert len(found["conflicts"]) == 1  # main changed the row that dev deleted
    with pytest.raises(UsageError, match="conflict"):
        lance("merge dev --key id")
    assert ids(shell) == before
    lance("merge dev --key id --on-conflict theirs -m take the clean-up of dev")
    assert ids(shell) == [one for one in before if one != 3]
    assert shell.user_ns["ds"].history(1)[0].message == "take the clean-up of dev"


def test_one_change_is_picked(lance: Lance, shell: InteractiveShell) -> None:
    lance("branch create other v1")
    lance("cherry-pick main:5")
    assert ids(shell) == [*range(30), *range(40, 50)]


def test_one_change_is_undone(lance: Lance, shell: InteractiveShell) -> None:
    lance("revert 6 -m row 41 was fine")
    assert 41 in ids(shell)
    assert shell.user_ns["ds"].version == 8
    with pytest.raises(UsageError, match="revert"):
        lance("revert 6")
