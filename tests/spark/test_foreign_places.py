"""A worker has another disk at the path of the dataset: every job is refused, nothing changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lance_nb import spark
from tests.house.source import ROOT
from tests.spark.data import MARKS
from tests.spark.foreign_place import namespace

pytestmark = MARKS
SECONDS_MAX = 400  # about 25 on two idle cores


def run(folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """Run the jobs in a child process; end its cluster with it."""
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.foreign_place", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
    return child.returncode, out, err


def test_files_on_another_disk_are_not_committed(tmp_path: Path, bytecode: dict[str, str]) -> None:
    """``python -m tests.spark.foreign_place FOLDER --long`` runs the other verbs too."""
    if (problem := spark.why_not()) is not None:
        pytest.skip(problem)
    if namespace() is None:
        pytest.skip("this process may not mount a folder over another one")
    code, out, err = run(tmp_path, bytecode)
    assert code == 0, err[-3000:]
    *jobs, end = map(json.loads, out.splitlines())
    assert len(jobs) == 7
    for job in jobs:
        print(job["job"], job["seconds"])
        assert "Nothing was committed. Either a worker has another disk at" in job["problem"], job
        assert job["is_unchanged"], job
        assert job["num_written_elsewhere"] > 0, job  # the tasks did their work
    assert end == {"unfinished": []}
