from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from tests.unit.magic.conftest import Lance


@pytest.fixture(autouse=True)
def opened(lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")


def counts(found: object) -> dict[str, int]:
    return {one["what"]: one["count"] for one in found.data}  # type: ignore[attr-defined]


def test_a_diff_begins_with_counts(lance: Lance) -> None:
    found = lance("diff v1..HEAD~1")
    assert counts(found)["rows before"] == 30
    assert counts(found)["rows after"] == 49
    assert counts(found)["transactions"] == 3
    assert "no difference" in lance("diff HEAD..HEAD").picture.text


def test_one_end_is_the_version_in_hand(lance: Lance) -> None:
    lance("at 4")
    for words in ("v1", "v1..", "tag:v1..HEAD~3"):
        assert counts(lance(f"diff {words}"))["rows after"] == 40


def test_three_dots_begin_at_the_fork(lance: Lance) -> None:
    found = lance("diff main...dev")
    assert found.value.a == (None, 3)
    assert counts(found)["rows deleted"] == 1


def test_rows_and_levels_are_tables(lance: Lance) -> None:
    rows = lance("diff HEAD~2..HEAD --rows --key id --all").value
    assert rows.num_rows == 6
    assert lance("diff 2..3 --fragments").value.num_rows == 1
    assert lance("diff 2..5 --transactions").value.num_rows == 3
    assert lance("diff 2..5 --schema").value.num_rows == 0
    with pytest.raises(UsageError, match="tag or branch 'nope' does not exist"):
        lance("diff nope..HEAD")


def test_the_life_of_a_row(lance: Lance) -> None:
    events = [one["event"] for one in lance("row id=3").data]
    assert events[0] == "created"
    assert "updated" in events
    with pytest.raises(UsageError, match="expected a row id, or a key"):
        lance("row x")
