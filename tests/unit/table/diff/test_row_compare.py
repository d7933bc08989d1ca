"""Values of rows compare as in plain Python; blobs by their bytes, wherever they are stored."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.table.diff import row_compare
from lance_nb.table.diff.row_compare import differing, values_differ
from lance_nb.table.diff.row_level import KINDS, Compared, Page, RowLevel
from tests.support.recorded_answers import groups, table_of

NAN = float("nan")
CASES = [
    (pa.int32(), [1, None, 3, None, 5], [1, None, 4, 0, None]),
    (pa.float64(), [0.0, NAN, 1.5, None, -0.0], [-0.0, NAN, 1.5, NAN, -0.0]),
    (pa.float16(), [np.float16(1), np.float16(NAN)], [np.float16(2), np.float16(NAN)]),
    (pa.bool_(), [True, False, None, True], [True, True, None, None]),
    (pa.string(), ["a", "", None, "b"], ["a", None, None, "c"]),
    (pa.large_binary(), [b"a", b"", None], [b"a", b"b", b""]),
    (pa.binary(2), [b"ab", None, b"cd"], [b"ab", b"xx", b"ce"]),
    (pa.decimal128(10, 2), [Decimal("1.20"), None], [Decimal("1.30"), None]),
    (pa.timestamp("us", "UTC"), [1, 2, None], [1, 3, None]),
    (pa.month_day_nano_interval(), [(1, 2, 3), None], [(1, 2, 4), None]),
    (pa.null(), [None, None], [None, None]),
    (pa.list_(pa.int64()), [[1, 2], [], None, [1], [None]], [[1, 3], None, None, [1, 1], [None]]),
    (pa.large_list(pa.string()), [["a"], ["b", None], []], [["a"], ["b", ""], []]),
    (pa.list_(pa.float32(), 2), [[1, 2], None, [3, NAN]], [[1, 2], [0, 0], [3, NAN]]),
    (
        pa.map_(pa.string(), pa.int32()),
        [[("a", 1)], [("a", 1)], None],
        [[("a", 1)], [("b", 1)], []],
    ),
    (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
        [{"x": 1, "y": ["a"]}, None, {"x": None, "y": []}, {"x": 2, "y": ["q"]}],
        [
            {"x": 1, "y": ["a"]},
            {"x": None, "y": None},
            {"x": None, "y": None},
            {"x": 3, "y": ["q"]},
        ],
    ),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None], ["a", "c", None]),
]  # fmt: skip


def _alike(one: object, other: object) -> bool:
    """Compare as the module says: NaN with NaN, and zeros by their sign."""
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_alike(one[key], other[key]) for key in one)
    return one == other


@pytest.mark.parametrize(("type_", "one", "other"), CASES, ids=[str(case[0]) for case in CASES])
def test_values_differ_where_python_says_so(type_: pa.DataType, one: list, other: list) -> None:
    a, b = pa.array(one, type_), pa.array(other, type_)
    expected = [not _alike(x, y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)]

    assert differing(a, b).tolist() == expected


@pytest.mark.parametrize(("type_", "one", "other"), CASES, ids=[str(case[0]) for case in CASES])
def test_slices_are_compared_where_they_begin(type_: pa.DataType, one: list, other: list) -> None:
    a, b = pa.array(one * 5, type_), pa.array([other[-1], *other * 5], type_)
    whole = differing(pa.array(one * 5, type_), pa.array(other * 5, type_))

    assert differing(a.slice(3), b.slice(4)).tolist() == whole[3:].tolist()


def test_extension_types_are_compared_by_their_storage() -> None:
    one = pa.array([b"0" * 16, None], pa.uuid())
    other = pa.array([b"1" * 16, None], pa.uuid())

    assert differing(one, other).tolist() == [True, False]


def test_nothing_is_compared_of_nothing() -> None:
    assert differing(pa.array([], pa.int8()), pa.array([], pa.int8())).tolist() == []


_NUMBERS = count()
BLOB = {"lance-encoding:blob": "true"}


def _key(value: Any) -> Any:
    """Make every NaN equal to every other, and tell the two zeros apart."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, list):
        return [_key(one) for one in value]
    if isinstance(value, dict):
        return {name: _key(one) for name, one in value.items()}
    return value


COLUMNS = [(group, name) for group in groups() for name in table_of(group).column_names]


@pytest.mark.parametrize(("group", "name"), COLUMNS, ids=[f"{g} {n}" for g, n in COLUMNS])
def test_values_differ_where_they_are_not_equal(group: str, name: str) -> None:
    column = table_of(group)[name].combine_chunks()
    if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
        shown = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    elif isinstance(column, pa.ExtensionArray):
        shown = column.storage
    else:
        shown = column
    choose = random.Random(name)
    places = list(range(len(column)))
    for _ in range(3):
        other = [choose.choice([at, choose.choice(places)]) for at in places]
        start = choose.randint(0, 3)
        right = column.take(pa.array(other))
        expected = [
            _key(a) != _key(b)
            for a, b in zip(shown.to_pylist(), shown.take(pa.array(other)).to_pylist(), strict=True)
        ]
        assert differing(column, right).tolist() == expected
        assert differing(column.slice(start), right.slice(start)).tolist() == expected[start:]


def test_a_column_whose_type_changed_is_compared_in_its_new_one_value_by_value() -> None:
    old = pa.chunked_array([["1", "x", None, "4"], ["-5", "300", "7"]])
    new = pa.chunked_array([pa.array([1, 2, None, 5, -5, 44, 7], pa.int8())])

    assert values_differ(old, new).tolist() == [False, True, False, True, False, True, False]
    assert values_differ(None, new).tolist() == [True, True, False, True, True, True, True]
    assert values_differ(old, None).tolist() == [True, True, False, True, True, True, True]
    narrow = pa.chunked_array([pa.array([1, 2, None], pa.int8())])
    assert values_differ(narrow, pa.chunked_array([pa.array([1, 3, 3], pa.int64())])).tolist() == [
        False, True, True,
    ]  # fmt: skip


def _blob_rows(version: str) -> pa.Table:
    inside = pa.struct([pa.field("data", pa.large_binary(), metadata=BLOB), ("k", pa.int32())])
    schema = pa.schema([
        pa.field("id", pa.int64()), pa.field("b", pa.large_binary(), metadata=BLOB),
        pa.field("st", inside),
    ])  # fmt: skip
    rows = [
        {"id": n, "b": [b"same", None, b"", b"long" * 9][n % 4], "st": {"data": b"d%d" % n, "k": n}}
        for n in range(12)
    ]
    return pa.Table.from_pylist(rows, schema)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("held", [1, 10**6], ids=["read one by one", "read together"])
def test_payloads_are_compared_by_their_bytes(
    version: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_compare, "PAYLOAD_BYTES", held)
    table = _blob_rows(version)
    ds = lance_nb.write_dataset(
        table, f"memory://blob-diffs/{next(_NUMBERS)}.lance", max_rows_per_file=5,
        data_storage_version=version,
    )  # fmt: skip
    changed = table.to_pylist()
    changed[0]["b"] = b"SAME"  # other bytes, as many
    changed[1]["b"] = b"new"
    changed[3]["b"] = None
    changed[4]["b"] = b"longer"
    changed[6]["st"] = {"data": b"D6", "k": 6}
    changed[7]["st"] = {"data": b"d7", "k": 70}
    changed[8]["st"] = None
    changed[9]["st"] = {"data": None, "k": 9}
    moved = pa.Table.from_pylist([*changed[5:], *changed[:5]], table.schema)
    lance_nb.write_dataset(moved, ds.uri, mode="overwrite", data_storage_version=version)
    diff = lance_nb.dataset(ds.uri).diff(1, 2, key="id")
    found = diff.rows().read_all().select(["id", "_change", "_changed"]).to_pylist()

    assert {row["id"]: row["_changed"] for row in found} == {
        0: ["b"], 1: ["b"], 3: ["b"], 4: ["b"], 6: ["st"], 7: ["st"], 8: ["st"], 9: ["st"],
    }  # fmt: skip
    assert {row["_change"] for row in found} == {"changed"}
    assert diff.summary().changed == 8


def test_shares_of_the_rows_are_all_of_them(past: Any) -> None:
    ds = past(stable=False)
    for ends, key in (((1, 7), "id"), ((7, 1), "id"), ((2, 4), None)):
        diff = ds.diff(*ends, key=key)
        level = RowLevel(diff.ends, diff.match, diff.column_pairs, diff.matched_by)
        whole = level.rows(Compared(None, new_columns=False), KINDS, Page()).read_all().to_pylist()
        for number_of in (1, 2, 3, 7):
            parts: list[Any] = []
            for number in range(number_of):
                share = level.share(number, number_of)
                parts += (
                    share.rows(Compared(None, new_columns=False), KINDS, Page())
                    .read_all()
                    .to_pylist()
                )
            assert sorted(parts, key=repr) == sorted(whole, key=repr)


def test_removed_rows_are_named_by_their_stable_ids(past: Any) -> None:
    ds = past(steps=4)
    diff = ds.diff(1, 4)

    assert diff.removed_row_ids().dtype == np.uint64
    assert diff.removed_row_ids().tolist() == [3]
    assert sorted(ds.diff(2, 1).removed_row_ids().tolist()) == list(range(10, 15))
    assert (diff.a, diff.b) == ((None, 1), (None, 4))
    assert (diff.ancestor.branch, diff.ancestor.version) == (None, 1)


def test_a_sample_of_ten_thousand_rows_is_profiled() -> None:
    uri = f"memory://samples/{next(_NUMBERS)}.lance"
    lance_nb.write_dataset(pa.table({"n": range(10_000)}), uri)
    lance_nb.write_dataset(pa.table({"n": range(20_000)}), uri, mode="overwrite")
    (drift,) = lance_nb.dataset(uri).diff(1, 2).drift()
    (exact,) = lance_nb.dataset(uri).diff(1, 2).drift(exact=True)

    assert drift.before.num_sampled == 10_000
    assert 9_000 < drift.after.num_sampled <= 10_000
    assert (exact.before.num_sampled, exact.after.num_sampled) == (10_000, 20_000)


OLD = pa.schema([
    pa.field("id", pa.int64()), pa.field("k", pa.int64()),
    pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
])  # fmt: skip
BLOB_COLUMNS: dict[str, tuple[str, Any]] = {
    "second generation": ("2.2", None), "first, 2.1": ("2.1", OLD), "first, 2.0": ("2.0", OLD),
}  # fmt: skip


def rows(schema: pa.Schema | None, blobs: dict[int, bytes | None]) -> pa.Table:
    columns = {"id": list(blobs), "k": [0] * len(blobs)}
    if schema is None:
        return pa.table({**columns, "b": lance_nb.blob_array(list(blobs.values()))})
    values = pa.array(list(blobs.values()), pa.large_binary())
    return pa.table([pa.array(one) for one in columns.values()] + [values], schema=schema)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("stable", [True, False], ids=["row ids", "key"])
@pytest.mark.parametrize("kind", BLOB_COLUMNS)
def test_a_blob_differs_where_its_bytes_do(
    tmp_path: Path, kind: str, stable: bool, size: int
) -> None:
    version, schema = BLOB_COLUMNS[kind]
    ds = lance_nb.write_dataset(
        rows(schema, {1: b"a" * size, 2: None, 3: b"c" * size, 4: b""}), tmp_path / "d",
        data_storage_version=version, enable_stable_row_ids=stable,
    )  # fmt: skip

    def upsert(blobs: dict[int, bytes | None]) -> None:
        lance_nb.dataset(ds.uri).merge_insert("id").when_matched_update_all().execute(
            rows(schema, blobs)
        )

    lance_nb.dataset(ds.uri).update({"k": "1"}, where="id <> 2")  # the payloads move
    upsert({1: b"z" * size})  # as long as before, and at the same place in its file
    upsert({3: b"c" * size})
    upsert({2: b"now", 4: None})
    lance_nb.dataset(ds.uri).insert(rows(schema, {9: b"new"}))
    lance_nb.dataset(ds.uri).delete("id = 1")

    now = lance_nb.dataset(ds.uri)
    key: dict[str, Any] = {} if stable else {"key": "id"}
    found = [now.diff(a, b, **key).summary() for a, b in zip(range(1, 7), range(2, 8), strict=True)]

    assert [one.cells for one in found] == [
        {"k": 3}, {"k": 1, "b": 1}, {"k": 1}, {"k": 1, "b": 2}, {}, {},
    ]  # fmt: skip
    whole = now.diff(1, 7, **key).summary()
    assert (whole.added, whole.removed, whole.changed, whole.cells) == (1, 1, 2, {"b": 2})


def test_cells_of_blobs_are_listed_with_both_values(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(
        rows(None, {1: b"one", 2: None}), tmp_path / "d", enable_stable_row_ids=True
    )
    ds = lance_nb.dataset(ds.uri)
    ds.update({"b": "x'00ff'"}, where="id = 2")
    diff = lance_nb.dataset(ds.uri).diff(1, 2)
    (cell,) = diff.cells().read_all().to_pylist()
    assert cell["b"]["old"] is None
    assert cell["b"]["new"]["size"] == 2
    changed = diff.rows().read_all()
    assert set(changed["id"].to_pylist()) == {2}
