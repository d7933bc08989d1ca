"""A small share of the rig; the long form: make torture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.requirements import require_pylance
from tests.torture import report

ROOT = Path(__file__).parents[2]
KILLED = ("append", "cleanup_old_versions", "create_branch", "tags.update", "merge_insert, upsert")


@pytest.mark.interop
@pytest.mark.slow
def test_a_killed_writer_leaves_the_state_before_or_after() -> None:
    require_pylance()
    output = run("tests.torture.kills", *KILLED)
    assert "'rounds': " in output


LOST = ("create", "append", "tags.delete", "branches.delete", "migrate_manifest_paths_v2")


@pytest.mark.interop
@pytest.mark.slow
def test_a_power_failure_leaves_the_state_before_or_after() -> None:
    """Found by it: new folders, deleted tags, branches and old names were not synced."""
    require_pylance()
    output = run("tests.torture.losses", *LOST)
    assert "'states': " in output


def run(module: str, *verbs: str) -> str:
    """Run a part in a process of its own: it forks, and so must have no threads of other tests."""
    said = [part for one in verbs for part in ("--verb", one)]
    command = [sys.executable, "-m", module, "1", "1", *said]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_reliability_md_says_what_the_stored_results_say() -> None:
    assert report.FILE.read_text() == report.text(), "run make reliability"
