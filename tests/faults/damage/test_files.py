"""Damaged data files end in data or in a LanceError: never another exception, a hang, or a crash.

``LANCE_NB_TEST_SCALE=100`` damages a hundred times as often, with seeds that were not used before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(path.name for path in GOLDEN.glob("*.lance"))
SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "1"))


@pytest.mark.parametrize("name", FILES)
def test_damages_end_in_data_or_a_lance_error(name: str) -> None:
    _fuzz([name], first=1000, count=int(80 * SCALE))


def _fuzz(names: list[str], first: int, count: int) -> None:
    """Run in a process of its own, where memory is bounded and a crash is seen."""
    command = [sys.executable, "-m", "tests.faults", "files", str(count), str(first)]
    command += [part for name in names for part in ("--data", str(GOLDEN / name))]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120 + 2 * count,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
