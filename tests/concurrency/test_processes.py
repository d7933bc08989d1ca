"""Real processes of ours and of pylance on one dataset; the long form: make race."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.concurrency.processes import run
from tests.support.requirements import require_pylance

COMMITS_EACH = 25  # times 8 processes: 200


@pytest.mark.interop
@pytest.mark.slow
def test_four_processes_of_ours_and_four_of_pylance_lose_nothing(tmp_path: Path):
    require_pylance()
    found = run(str(tmp_path / "t.lance"), COMMITS_EACH, ours=4, pylance=4)
    print(found)
    assert found["polls"] > 0
