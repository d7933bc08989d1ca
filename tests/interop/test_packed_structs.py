"""Packed structs of every type that they can hold: whole, and single fields of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import lance_nb
from tests.support.reading import first_difference, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 400
READS: dict[str, tuple[Callable[[Any], pa.Table], Callable[[pa.Table], pa.Table]]] = {
    "whole": (lambda data: data.to_table(), lambda table: table),
    "fields": (
        lambda data: data.to_table(["p.last", "p.first"]),
        lambda table: fields_of(table, "last", "first"),
    ),
    "filter": (
        lambda data: data.to_table(["p.last"], filter="p.n % 5 = 2"),
        lambda table: fields_of(table, "last").take(list(range(2, ROWS, 5))),
    ),
    "take": (
        lambda data: data.take([7, 0, 399], ["p.last"]).flatten(),
        lambda table: fields_of(table, "last").take([7, 0, 399]),
    ),
    "fragment take": (
        lambda data: data.get_fragments()[0].take([0, 7, 399], ["p.first", "p.n"]).flatten(),
        lambda table: fields_of(table, "first", "n").take([0, 7, 399]),
    ),
}


def fields_of(table: pa.Table, *names: str) -> pa.Table:
    """Return fields of the struct as columns."""
    return pa.table({f"p.{name}": table["p"].chunk(0).field(name) for name in names})


def extension(kind: pa.DataType, values: list[object]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def packed(version: str) -> pa.Table:
    rows = range(ROWS)
    fields = {
        "first": extension(pa.uuid(), [UUID(int=row % 5).bytes for row in rows]),
        "n": pa.array(rows),
        "price": pa.array([Decimal(row) for row in rows], pa.decimal128(10, 2)),
        "day": pa.array([date(2000, 1, 1 + row % 28) for row in rows]),
        "last": extension(pa.bool8(), [row % 2 for row in rows]),
    }
    if version == "2.2":
        texts = [f'{{"k":{row % 7}}}' for row in rows]
        fields["first"] = extension(pa.json_(), texts)
        fields["text"] = pa.array([f"text {row % 3}" for row in rows])
    structs = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    marks = {"lance-encoding:packed": "true"}
    return pa.table([structs], schema=pa.schema([pa.field("p", structs.type, metadata=marks)]))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", ["pylance", "lance_nb"])
def test_packed_structs_read_equal(version: str, writer: str, tmp_path: Path) -> None:
    lance = require_pylance()
    library = lance_nb if writer == "lance_nb" else lance
    table = packed(version)
    library.write_dataset(table, str(tmp_path / "d"), data_storage_version=version)
    ours, theirs = lance_nb.dataset(tmp_path / "d"), lance.dataset(tmp_path / "d")
    assert same(ours.to_table()["p"], theirs.to_table()["p"])
    for name, (read, expect) in READS.items():  # pylance mixes up single fields
        found, expected = read(ours), expect(table)
        assert found.column_names == expected.column_names, name
        for column in expected.column_names:
            pair = found[column], expected[column]
            assert same(*pair), (name, column, first_difference(*pair))


@pytest.mark.parametrize("text", ["p.v.c", "p.v.a", "p.v", "p.v.c IS NULL", "p.m"])
def test_fields_of_a_struct_inside_a_packed_struct_are_null_as_in_pylance(
    text: str, tmp_path: Path
) -> None:
    lance = require_pylance()  # it refuses values that are not null
    inner = pa.struct([("a", pa.float32()), ("c", pa.int32())])
    kind = pa.struct([("v", inner), ("m", pa.int32())])
    field = pa.field("p", kind, metadata={"lance-encoding:packed": "true"})
    table = pa.table([pa.array([None, None], kind)], schema=pa.schema([field]))
    lance.write_dataset(table, str(tmp_path / "d"))
    ours, theirs = lance_nb.dataset(tmp_path / "d"), lance.dataset(str(tmp_path / "d"))
    found, expected = (one.to_table(columns={"x": text}) for one in (ours, theirs))
    assert found.schema.equals(expected.schema)
    assert found.to_pylist() == expected.to_pylist()


def test_fields_of_a_struct_inside_a_packed_struct_are_read(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.float32()), ("c", pa.int32())])
    kind = pa.struct([("v", inner), ("m", pa.int32())])
    field = pa.field("p", kind, metadata={"lance-encoding:packed": "true"})
    rows = [{"v": {"a": 1.0, "c": 2}, "m": 3}, None, {"v": {"a": 4.0, "c": 5}, "m": 6}]
    ds = lance_nb.write_dataset(
        pa.table([pa.array(rows, kind)], schema=pa.schema([field])), tmp_path / "d"
    )
    assert ds.to_table(columns={"x": "p.v.c + 1"})["x"].to_pylist() == [3, None, 6]
    assert ds.to_table(filter="p.v.a > 1.5", columns=["p.m"])["p.m"].to_pylist() == [6]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_packed_structs_of_structs_are_refused_where_nobody_can_read_them(
    version: str, tmp_path: Path
) -> None:
    inner = pa.struct([("b", pa.int32())])
    field = pa.field("p", pa.struct([("s", inner)]), metadata={"lance-encoding:packed": "true"})
    rows = pa.table([pa.array([{"s": {"b": 3}}], field.type)], schema=pa.schema([field]))

    with pytest.raises(lance_nb.NotSupportedError, match=r"inside a packed struct needs .* 2.2"):
        lance_nb.write_dataset(rows, str(tmp_path / "x"), data_storage_version=version)

    if version == "2.0":  # pylance writes them; the reader of what it wrote fails
        lance = require_pylance()
        lance.write_dataset(rows, str(tmp_path / "y"), data_storage_version=version)
        with pytest.raises((OSError, pa.ArrowInvalid)):
            lance.dataset(str(tmp_path / "y")).to_table()
