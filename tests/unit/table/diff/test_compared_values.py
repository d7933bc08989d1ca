"""Values of every type, payloads and columns of two types are compared as Python compares them."""

from __future__ import annotations

import math
import random
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.table.diff import sides
from lance_nb.table.diff.row_level import Compared, Page, RowLevel
from lance_nb.table.diff.row_tables import KINDS
from lance_nb.table.diff.sides import values_differ
from lance_nb.table.diff.values import differing
from tests.support.recorded_answers import groups, table_of

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
    monkeypatch.setattr(sides, "PAYLOAD_BYTES", held)
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
