"""Damaged datasets end in findings, whatever is damaged: never in an error, a hang or eaten memory.

``LANCE_NB_TEST_SCALE=100`` damages a hundred times as often, with seeds that were not used before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "1"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "stable"])
def test_health_of_damaged_datasets_is_reported(kind: str) -> None:
    _run(kind, 10_000, int(40 * SCALE))


def _run(kind: str, first: int, count: int) -> None:
    """Run in a process of its own, where memory is bounded and a crash is seen."""
    command = [sys.executable, "-m", "tests.hostile.datasets", str(first), str(count), kind]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120 + 2 * count
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
