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
    said = [part for name in KILLED for part in ("--verb", name)]
    output = run("tests.torture.kills", "1", "1", *said)
    assert "'rounds': " in output


def run(module: str, *arguments: str) -> str:
    """Run a part in a process of its own: it forks, and so must have no threads of other tests."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_reliability_md_says_what_the_stored_results_say() -> None:
    assert report.FILE.read_text() == report.text(), "run make reliability"
