"""Many fragments of a few rows: which are read without being opened, and that none is lost."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.table import fragment_reader, tiny_fragments
from lance_nb.table.projection import project
from lance_nb.table.tiny_fragments import has_tiny_fragments, scan_tiny

_NUMBERS = count()
# Type -> values of rows that follow each other, and whether constants of it are put together.
TYPES: list[tuple[pa.DataType, Any, Any, bool]] = [
    (pa.int8(), 1, -2, True), (pa.uint16(), 7, 65535, True), (pa.int64(), 2**40, -1, True),
    (pa.float16(), np.float16(1.5), np.float16(-0.0), True), (pa.float64(), 0.25, -1e300, True),
    (pa.date32(), date(2020, 1, 2), date(1969, 1, 1), True),
    (pa.timestamp("us", "UTC"), datetime(2020, 1, 2, tzinfo=UTC),
     datetime(1960, 1, 1, tzinfo=UTC), True),
    (pa.time64("ns"), time(1, 2, 3), time(0), True),
    (pa.duration("ms"), timedelta(seconds=1), timedelta(days=-1), True),
    (pa.bool_(), True, False, False), (pa.decimal128(20, 3), 1, 2, False),
    (pa.string(), "a", "", False), (pa.binary(), b"a", b"", False),
    (pa.list_(pa.int32()), [1], [], False), (pa.list_(pa.float32(), 2), [1, 2], [0, 0], False),
    (pa.struct([("x", pa.int32())]), {"x": 1}, {"x": 2}, False),
]  # fmt: skip


def _written(type_: pa.DataType, *, fragments: int = 20, rows: int = 2) -> tuple[Any, pa.Table]:
    (one, other) = next((one, other) for kind, one, other, _ in TYPES if kind == type_)
    values = [v for k in range(fragments) for v in [other if k % 3 else one] * rows]
    table = pa.table({"c": pa.array(values, type_), "n": pa.array(range(len(values)), pa.int64())})
    ds = lance_nb.write_dataset(
        table, f"memory://tiny-kinds/{next(_NUMBERS)}.lance", max_rows_per_file=rows,
        data_storage_version="2.2",
    )  # fmt: skip
    return ds, table


def _opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    real = fragment_reader.open_file

    def noted(snapshot: Any, fragment: Any, file: Any) -> Any:
        seen.append(fragment.id)
        return real(snapshot, fragment, file)

    monkeypatch.setattr(fragment_reader, "open_file", noted)
    return seen


@pytest.mark.parametrize(
    ("type_", "worth"), [pytest.param(one, worth, id=str(one)) for one, _, _, worth in TYPES]
)
def test_values_of_every_type_are_read(
    type_: pa.DataType, worth: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds, table = _written(type_)
    snapshot = lance_nb.dataset(ds.uri).opened[1]
    wanted = project(snapshot.manifest.schema, ["c"])
    seen = _opened(monkeypatch)

    assert has_tiny_fragments(snapshot, wanted) == worth
    assert ds.to_table().equals(table)
    if worth:
        seen.clear()
        assert scan_tiny(snapshot, wanted).equals(table.select(["c"]))
        assert seen == []  # nothing was opened


def _snapshot(ds: LanceDataset) -> Any:
    return lance_nb.dataset(ds.uri).opened[1]


@pytest.mark.parametrize(
    ("columns", "row_columns", "worth"),
    [
        (["c"], [], True), (["c", "n"], [], True), ([], [], False), (["c"], ["_rowid"], False),
        (["_rowaddr"], [], False),
    ],
    ids=str,
)  # fmt: skip
def test_only_stored_numbers_are_worth_it(columns, row_columns, worth: bool) -> None:
    snapshot = _snapshot(_written(pa.int8())[0])

    assert (
        has_tiny_fragments(snapshot, project(snapshot.manifest.schema, columns, row_columns))
        == worth
    )


def test_fields_of_structs_are_not_put_together() -> None:
    snapshot = _snapshot(_written(pa.struct([("x", pa.int32())]))[0])

    assert not has_tiny_fragments(snapshot, project(snapshot.manifest.schema, ["c.x"]))


@pytest.mark.parametrize(("rows", "worth"), [(8, True), (9, False)])
def test_fragments_are_tiny_up_to_eight_rows_on_average(rows: int, worth: bool) -> None:
    ds, table = _written(pa.int8(), rows=rows)
    snapshot = _snapshot(ds)

    assert has_tiny_fragments(snapshot, project(snapshot.manifest.schema, ["c"])) == worth
    assert ds.to_table().equals(table)


def test_fragments_of_another_kind_are_read_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    ds, table = _written(pa.int64())
    ds.delete("n IN (4, 6, 7)")  # a row of fragment 2, all of fragment 3
    other = pa.table({"c": pa.array([5, 6], pa.int64()), "n": pa.array([100, 101], pa.int64())})
    lance_nb.write_dataset(other, ds.uri, mode="append")
    lance_nb.write_dataset(other.slice(0, 1), ds.uri, mode="append")
    snapshot = _snapshot(ds)
    seen = _opened(monkeypatch)
    expected = pa.concat_tables([table.filter([n not in (4, 6, 7) for n in range(40)]), other,
                                 other.slice(0, 1)])  # fmt: skip

    found = scan_tiny(snapshot, project(snapshot.manifest.schema, ["c"]))
    assert found["c"].to_pylist() == expected["c"].to_pylist()
    assert sorted(set(seen)) == [2, 20]
    assert lance_nb.dataset(ds.uri).to_table().equals(expected)


def test_after_a_few_misses_the_rest_is_read_as_always(monkeypatch: pytest.MonkeyPatch) -> None:
    ds, _ = _written(pa.int64())
    snapshot = _snapshot(ds)
    wanted = project(snapshot.manifest.schema, ["n"])  # two rows that differ: not constant
    tried: list[bytes] = []
    real = tiny_fragments.plain_fragment
    monkeypatch.setattr(
        tiny_fragments, "plain_fragment", lambda raw: tried.append(raw) or real(raw)
    )

    assert scan_tiny(snapshot, wanted)["n"].to_pylist() == list(range(40))
    assert len(tried) == 8


def test_a_column_that_came_later_is_null_in_older_fragments() -> None:
    ds, table = _written(pa.int64())
    ds.add_columns(pa.schema([pa.field("later", pa.int32())]))
    ds = lance_nb.dataset(ds.uri)

    assert ds.to_table(["later", "c"])["later"].to_pylist() == [None] * 40
    assert ds.to_table(["later", "c"])["c"].equals(table["c"])
