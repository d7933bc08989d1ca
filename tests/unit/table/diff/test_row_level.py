"""Rows and cells: kinds, pages, columns, keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError
from lance_nb.table.diff.changed_rows import FIRST_WINDOW_CELLS, FIRST_WINDOW_ROWS


@pytest.mark.parametrize("stable", [True, False])
def test_pages_are_parts_of_the_whole(past, stable: bool) -> None:
    diff = past(stable=stable).diff(1, key="id")
    whole = diff.rows().read_all().to_pylist()

    for size in (1, 3, 8):
        fresh = past(stable=stable).diff(1, key="id")
        pages = [
            row
            for start in range(0, len(whole) + size, size)
            for row in fresh.rows(limit=size, offset=start).read_all().to_pylist()
        ]
        assert [(row["_change"], row["id"]) for row in pages] == [
            (row["_change"], row["id"]) for row in whole
        ]


def test_kinds_come_one_after_the_other(past) -> None:
    diff = past().diff(1)

    kinds = diff.rows(kinds=["removed", "changed"]).read_all().column("_change").to_pylist()
    assert kinds == ["removed", "changed", "changed"]
    assert diff.rows(kinds="added").read_all().num_rows == 5
    assert diff.rows(kinds="added", batch_size=2).read_next_batch().num_rows == 2


def test_columns_limit_what_is_compared(past) -> None:
    diff = past().diff(1)

    assert diff.summary("id").changed == 0
    assert diff.summary(["u"]).cells == {"u": 2}
    assert diff.rows(["t"], kinds="changed").read_all().num_rows == 0
    assert diff.rows(["u"]).schema.names == ["_change", "_rowid", "_rowaddr", "_changed", "u"]


def test_a_new_column_is_no_change_unless_asked_for(past) -> None:
    diff = past().diff(4, 5)

    assert diff.summary().changed == 0
    assert diff.summary(new_columns=True).cells == {"w": 14}
    cell = diff.cells("w", limit=1, new_columns=True).read_all().to_pylist()[0]
    assert cell["w"] == {"old": None, "new": 0}


def test_a_column_that_went_is_shown_for_the_rows_that_went(past) -> None:
    removed = past().diff(5, 1).rows(["id", "w"], kinds="removed").read_all().to_pylist()

    assert sorted((row["id"], row["w"]) for row in removed) == [(n, 2 * n) for n in range(10, 15)]


def test_cells_have_old_and_new_values_of_what_changed(past) -> None:
    diff = past().diff(1, key="id")

    cells = diff.cells().read_all()
    assert cells.schema.names == ["_rowid", "_rowaddr", "id", "u", "t"]
    assert [(row["id"], row["u"], row["t"]) for row in cells.to_pylist()] == [
        (1, {"old": 1.0, "new": 101.0}, None),
        (7, {"old": 7.0, "new": 107.0}, None),
    ]
    assert diff.cells("u", limit=1, offset=1).read_all().num_rows == 1


def test_values_are_cast_to_the_new_type(make) -> None:
    ds = make()
    ds.alter_columns({"path": "id", "data_type": pa.int32()})
    ds.update({"id": "cast(100 as int)"}, where="v = 3")

    diff = ds.diff(1, key="t")
    assert diff.summary().cells == {"id": 1}
    assert diff.cells().read_all().to_pylist()[0]["id"] == {"old": 3, "new": 100}
    assert diff.rows(["id"]).schema.field("id").type == pa.int32()


def test_blobs_are_compared_by_their_payload(make) -> None:
    fields = [
        pa.field("id", pa.int64()),
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    ]
    data = pa.table([[0, 1, 2, 3], [b"a", b"bb", None, b"d"]], schema=pa.schema(fields))
    ds = make(data, enable_stable_row_ids=True, data_storage_version="2.1")
    other = pa.table([[0, 1], [b"a", b"xx"]], schema=data.schema)
    ds.merge_insert("id").when_matched_update_all().execute(other)

    diff = ds.diff(1)

    assert diff.summary().cells == {"b": 1}
    assert diff.rows(["id"], kinds="changed").schema.names[-1] == "id"
    assert diff.rows().read_all().column("id").to_pylist() == [1]


@pytest.mark.parametrize(
    "options",
    [{"limit": -1}, {"offset": -1}, {"batch_size": 0}, {"kinds": "new"}, {"kinds": ["added"] * 2}],
    ids=str,
)
def test_pages_that_make_no_sense_are_refused(past, options) -> None:
    diff = past(steps=2).diff(1)

    with pytest.raises(InvalidInputError):
        diff.rows(**options)


def test_a_column_that_is_not_there_is_refused(past) -> None:
    diff = past(steps=2).diff(1)

    with pytest.raises(ColumnNotFoundError, match="nobody"):
        diff.rows(["nobody"])
    with pytest.raises(ColumnNotFoundError, match="nobody"):
        past(steps=2).diff(1, key="nobody")


def test_progress_counts_the_rows_that_are_compared(past) -> None:
    told: list[tuple[int, int]] = []
    past().diff(1).summary(progress=lambda done, total: told.append((done, total)))

    assert told[-1] == (2, 2)


def test_other_columns_can_be_shown_than_are_compared(past) -> None:
    diff = past().diff(1)

    found = diff.rows(kinds="changed", show=["id", "w"]).read_all()
    assert found.schema.names[-2:] == ["id", "w"]
    assert found.column("_changed").to_pylist() == [["u"], ["u"]]
    assert diff.cells(show=["u"]).schema.names[-1] == "u"
    assert diff.cells(show=["t"]).read_all().column("t").to_pylist() == [None, None]


def test_it_tells_how_far_it_has_compared(past) -> None:
    diff = past().diff(1)
    told: list[tuple[int, int]] = []

    before = diff.found()
    after = diff.compare(10**9, progress=lambda done, total: told.append((done, total)))

    assert (before.added, before.removed, before.changed, before.is_finished) == (5, 1, 0, False)
    assert (after.changed, after.is_finished, after.compared) == (2, True, after.to_compare)
    assert told[0] == (0, after.to_compare)


def test_a_comparison_that_was_stopped_keeps_what_it_found(past) -> None:
    diff = past().diff(1)

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        diff.compare(10**9, progress=stop)
    assert diff.compare(10**9).changed == 2


def test_the_first_rows_are_there_before_all_are_compared(make) -> None:
    count = 3 * FIRST_WINDOW_ROWS
    table = pa.table({"id": range(count), "v": [0] * count})
    ds = make(table, enable_stable_row_ids=True, max_rows_per_file=count)
    ds.update({"v": "1"})
    diff = ds.diff(1)

    assert diff.compare(10).compared == FIRST_WINDOW_ROWS
    assert diff.rows(limit=2, offset=FIRST_WINDOW_ROWS - 1).read_all().num_rows == 2
    assert diff.summary().changed == count


def test_of_many_columns_few_rows_are_compared_first(make) -> None:
    count, columns = 3000, 120
    table = pa.table({f"c{at}": np.arange(count) for at in range(columns)})
    ds = make(table, enable_stable_row_ids=True, max_rows_per_file=count)
    ds.update({"c1": "c1 + 1"})
    diff = ds.diff(1)

    assert diff.compare(10).compared == FIRST_WINDOW_CELLS // columns < count
    assert diff.rows(limit=2, offset=count - 2, show=["c1"]).read_all().num_rows == 2
