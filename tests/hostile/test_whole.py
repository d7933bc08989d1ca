"""Whole datasets, damaged: every verb ends in data or a LanceError, soon and in little memory.

A small share; the long form: python -m tests.hostile.whole. ``golden/found`` holds cases that ended
otherwise once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.whole import Case, check

FOUND = sorted((Path(__file__).parent / "golden" / "found").glob("*.json"))


@pytest.mark.slow
def test_verbs_on_damaged_datasets_end_in_data_or_a_lance_error() -> None:
    ends = check(range(300))
    assert ends["done"] > 100
    assert ends["refused"] > 50


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_once_does_not_come_back(path: Path) -> None:
    check([Case.from_json(path.read_text())])
