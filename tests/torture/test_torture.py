"""A small share of the rig; the long form: make torture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.requirements import require_pylance
from tests.torture import report, results

ROOT = Path(__file__).parents[2]
KILLED = ("append", "cleanup_old_versions", "create_branch", "tags.update", "merge_insert, upsert")


@pytest.mark.interop
@pytest.mark.slow
def test_a_killed_writer_leaves_the_state_before_or_after() -> None:
    require_pylance()
    output = run("tests.torture.kills", *KILLED, most=4)
    assert "'rounds': " in output


LOST = ("create", "append", "tags.delete", "branches.delete", "migrate_manifest_paths_v2")


@pytest.mark.interop
@pytest.mark.slow
def test_a_power_failure_leaves_the_state_before_or_after() -> None:
    """Found by it: new folders, deleted tags, branches and old names were not synced."""
    require_pylance()
    output = run("tests.torture.losses", *LOST, most=12)
    assert "'states': " in output


@pytest.mark.interop
@pytest.mark.slow
def test_a_commit_of_pylance_beside_a_killed_writer_is_there_once() -> None:
    require_pylance()
    output = run("tests.torture.beside", "append", "update", "compact")
    assert "'died': " in output


@pytest.mark.interop
@pytest.mark.slow
def test_a_commit_through_a_manifest_store_is_finished_by_the_next_opener() -> None:
    """Found by it: a drop that was killed between manifests could not be repeated."""
    require_pylance()
    output = run("tests.torture.stores", "append", "create_branch", "drop", most=4)
    assert "'after': " in output


def run(module: str, *verbs: str, most: int | None = None) -> str:
    """Run a part in a process of its own: it forks, and so must have no threads of other tests."""
    said = [part for one in verbs for part in ("--verb", one)]
    said += [] if most is None else ["--per-verb", str(most)]
    command = [sys.executable, "-m", module, "1", "1", *said]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_reliability_md_says_what_the_stored_results_say() -> None:
    assert report.FILE.read_text() == report.text(), "run make reliability"


def test_a_run_is_added_to_the_stored_one_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    first = {"cases": 10, "ends": {"done": 9, "refused": 1}, "failures": [], "seeds": [1, 10]}
    second = {"cases": 5, "ends": {"done": 5, "new": 2}, "failures": ["x"], "seeds": [11, 15]}
    results.keep("rig", "first", first)
    results.added("rig", "second", second)

    stored = results.kept()["rig"]
    assert stored.pop("date")
    assert stored == {
        "cases": 15, "command": "first; second", "ends": {"done": 14, "refused": 1, "new": 2},
        "failures": ["x"], "seeds": [1, 15],
    }  # fmt: skip
    with pytest.raises(ValueError, match="do not follow"):
        results.added("rig", "second", second)
