"""The dataset that the hostile tests damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.copies import copy_to_folder

LATEST = 14


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the golden history: 14 versions, two fragments in the latest one."""
    return copy_to_folder("history", tmp_path)
