"""Batches of an iterator that do not have the schema: cast, or refused, as pylance does."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import lance.fragment
import pyarrow as pa
import pytest

import lance_nb

pytestmark = pytest.mark.interop

PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
ROW = pa.array([{"x": 1, "y": "a"}], PAIR)
LISTS = pa.list_(pa.int32())
OLD = pa.array([1, 2], pa.int32())

# name -> the column, and the type that the schema gives it
CASES: dict[str, tuple[pa.Array, pa.DataType]] = {
    "int32 to int64": (OLD, pa.int64()),
    "int64 to int32": (pa.array([1, None]), pa.int32()),
    "too large": (pa.array([1, 2**40]), pa.int32()),
    "negative": (pa.array([-1]), pa.uint8()),
    "double to float": (pa.array([0.1, float("nan"), None]), pa.float32()),
    "fraction": (pa.array([0.5]), pa.int64()),
    "whole double": (pa.array([2.0]), pa.int64()),
    "not exact as float": (pa.array([2**53 + 1]), pa.float32()),
    "string to large_string": (pa.array(["x", None]), pa.large_string()),
    "large_string to string": (pa.array(["x"], pa.large_string()), pa.string()),
    "view": (pa.array(["x"], pa.string_view()), pa.string()),
    "digits": (pa.array(["7"]), pa.int64()),
    "letters": (pa.array(["x"]), pa.int64()),
    "bytes": (pa.array(["x"]), pa.binary()),
    "dictionary to string": (pa.array(["x", "y", "x"]).dictionary_encode(), pa.string()),
    "string to dictionary": (pa.array(["x", "y"]), pa.dictionary(pa.int32(), pa.string())),
    "finer time": (pa.array([1], pa.timestamp("s")), pa.timestamp("us")),
    "coarser time": (pa.array([1], pa.timestamp("us")), pa.timestamp("s")),
    "time zone": (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC")),
    "nulls": (pa.nulls(2), pa.int64()),
    "child": (ROW, pa.struct([("x", pa.int64()), ("y", pa.string())])),
    "children in another order": (ROW, pa.struct([PAIR[1], PAIR[0]])),
    "child missing": (pa.array([{"x": 1}], pa.struct([PAIR[0]])), PAIR),
    "item": (pa.array([[1], None], LISTS), pa.list_(pa.int64())),
    "large_list": (pa.array([[1]], LISTS), pa.large_list(pa.int32())),
    "fixed size": (pa.array([[1, 2]], LISTS), pa.list_(pa.int32(), 2)),
    "other size": (pa.array([[1, 2, 3]], LISTS), pa.list_(pa.int32(), 2)),
    "vector": (pa.array([[1, 2]], pa.list_(pa.float64(), 2)), pa.list_(pa.float32(), 2)),
    "decimal": (pa.array([Decimal("1.50")]), pa.decimal128(10, 1)),
    "decimal cut": (pa.array([Decimal("1.55")]), pa.decimal128(10, 1)),
    "struct as number": (ROW, pa.int64()),
}  # fmt: skip
VERBS = ("create", "append", "overwrite", "fragments", "merge_insert")


def result(module: Any, verb: str, uri: str, column: pa.Array, kind: pa.DataType) -> Any:
    """Return the rows, None if the data was refused."""
    schema = pa.schema([("key", pa.int64()), ("v", kind)])
    keys = pa.array(range(len(column)))

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([keys, pa.nulls(len(keys), kind)], schema=schema)
        more = pa.array(range(100, 100 + len(keys)))
        yield pa.RecordBatch.from_arrays([more, column], ["key", "v"])

    if verb not in ("create", "fragments"):
        module.write_dataset(schema.empty_table(), uri)
    try:
        if verb == "merge_insert":
            builder = module.dataset(uri).merge_insert("key").when_not_matched_insert_all()
            builder.execute(rows(), schema=schema)
        elif verb == "fragments":
            write = lance.fragment.write_fragments if module is lance else lance_nb.write_fragments
            made = write(rows(), uri, schema=schema)
            module.LanceDataset.commit(uri, module.LanceOperation.Overwrite(schema, made))
        else:
            module.write_dataset(rows(), uri, schema=schema, mode=verb)
    except (OSError, ValueError):
        return None
    found = module.dataset(uri).to_table()
    return found.schema, sorted(found.to_pylist(), key=lambda row: row["key"])


@pytest.mark.parametrize("name", CASES)
def test_batches_are_cast_as_pylance_casts_them(name: str, tmp_path: Path):
    for verb in VERBS:
        if verb == "merge_insert" and name == "struct as number":
            continue
        ours, theirs = (
            result(module, verb, f"{tmp_path}/{module.__name__}-{verb}", *CASES[name])
            for module in (lance_nb, lance)
        )
        assert repr(ours) == repr(theirs), verb  # repr: NaN equals itself


@pytest.mark.parametrize("names", [("v", "key"), ("key",), ("key", "v", "more"), ("key", "w")])
def test_other_columns_are_refused(names: tuple[str, ...], tmp_path: Path):
    schema = pa.schema([("key", pa.int64()), ("v", pa.int64())])
    accepted = []
    for module in (lance_nb, lance):
        batch = pa.RecordBatch.from_pydict({name: [1] for name in names})
        try:
            module.write_dataset(iter([batch]), f"{tmp_path}/{module.__name__}", schema=schema)
            accepted.append(True)
        except (OSError, ValueError):
            accepted.append(False)
    # Ours: columns may come in another order, as they may in a table.
    assert accepted == [set(names) == {"key", "v"}, False]


def test_a_table_may_lack_columns_that_may_be_null(tmp_path: Path):
    schema = pa.schema([("a", pa.int32()), ("z", pa.int32())])
    for module in (lance_nb, lance):
        uri = f"{tmp_path}/{module.__name__}"
        module.write_dataset(schema.empty_table(), uri)
        data = pa.table({"a": pa.array([1], pa.int32())})
        module.write_dataset(data, uri, schema=schema, mode="append")
        assert module.dataset(uri).to_table().to_pylist() == [{"a": 1, "z": None}]


def test_an_upsert_takes_views(tmp_path: Path):
    for module in (lance_nb, lance):
        uri = f"{tmp_path}/{module.__name__}"
        module.write_dataset(pa.table({"a": ["x", "y"], "b": [1, 2]}), uri)
        source = pa.table({"a": pa.array(["z", "y"], pa.string_view()), "b": [8, 9]})
        builder = module.dataset(uri).merge_insert("a").when_matched_update_all()
        builder.when_not_matched_insert_all().execute(source)
        found = module.dataset(uri).to_table().to_pylist()
        assert sorted(found, key=str) == [
            {"a": "x", "b": 1}, {"a": "y", "b": 9}, {"a": "z", "b": 8}
        ]  # fmt: skip


PRIMARY = "lance-schema:unenforced-primary-key"
KEY = {PRIMARY: "true"}
NUMBER = pa.field("id", pa.int64(), nullable=False, metadata=KEY)
# name -> a schema with a field that is marked as primary key
KEYS: dict[str, pa.Schema] = {
    "column": pa.schema([NUMBER]),
    "column that may be null": pa.schema([NUMBER.with_nullable(True)]),
    "position": pa.schema([pa.field("id", pa.int64(), metadata={f"{PRIMARY}:position": "1"})]),
    "not a key": pa.schema([pa.field("id", pa.int64(), metadata={PRIMARY: "false"})]),
    "in a struct": pa.schema([pa.field("s", pa.struct([NUMBER]), nullable=False)]),
    "in a struct that may be null": pa.schema([pa.field("s", pa.struct([NUMBER]))]),
    "a struct": pa.schema([pa.field("s", pa.struct([PAIR[0]]), nullable=False, metadata=KEY)]),
    "a list": pa.schema([pa.field("l", LISTS, nullable=False, metadata=KEY)]),
    "in a list": pa.schema([pa.field("l", pa.list_(NUMBER), nullable=False)]),
    "a vector": pa.schema([pa.field("v", pa.list_(pa.float32(), 2), False, KEY)]),
}


@pytest.mark.parametrize("name", KEYS)
def test_primary_keys_are_those_that_pylance_takes(name: str, tmp_path: Path):
    empty = KEYS[name].empty_table()
    accepted = {}
    for module in (lance, lance_nb):
        try:
            module.write_dataset(empty, tmp_path / f"{module.__name__}.lance")
        except (OSError, ValueError) as error:
            accepted[module] = "primary key" not in str(error).lower()
        else:
            accepted[module] = True
    assert accepted[lance_nb] == accepted[lance]
    if accepted[lance]:
        assert lance.dataset(tmp_path / "lance_nb.lance").to_table() == empty


@pytest.mark.parametrize("module", [lance, lance_nb])
def test_no_change_makes_a_primary_key_that_may_be_null(module: Any, tmp_path: Path):
    schema = pa.schema([NUMBER, pa.field("other", pa.int64())])
    rows = pa.table({"id": [1], "other": [2]}, schema=schema)
    dataset = module.write_dataset(rows, tmp_path / "a.lance")
    with pytest.raises((OSError, ValueError), match=r"(?i)primary key.*null"):
        dataset.alter_columns({"path": "id", "nullable": True})
    plain = module.write_dataset(rows.select(["other"]), tmp_path / "b.lance")
    with pytest.raises((OSError, ValueError), match=r"(?i)primary key.*null"):
        plain.update_field_metadata({"other": KEY})
    assert lance.dataset(tmp_path / "a.lance").to_table() == rows
    assert lance.dataset(tmp_path / "b.lance").to_table() == rows.select(["other"])
