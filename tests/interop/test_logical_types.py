"""Every type that is stored in another form, in every kind of block, on every way to its values.

A table has one column for each type, distribution of values and nesting, so that all encodings that
a writer chooses meet all types: constants, dictionaries, runs, plain values, nulls. It is written
by pylance and by us, read by both, then updated and compacted by us and read by both again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.reading import decoded, first_difference, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 1000
FRAGMENTS = ((0, 600), (600, 400))  # first row, rows
VERSIONS = ("2.0", "2.1", "2.2")
WRITERS = ("pylance", "lance_nb")
BEGIN, DAY = date(2000, 1, 1), timedelta(days=1)
MIDNIGHT = datetime(2000, 1, 1, tzinfo=UTC)
JSON, UUID = pa.json_(), pa.uuid()

TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "json": (JSON, lambda n: json.dumps({"k": n, "s": f"v{n}"}, separators=(",", ":"))),
    "json scalar": (JSON, lambda n: str(n - 5)),
    "long json": (JSON, lambda n: json.dumps({"s": f"{n}" * 120}, separators=(",", ":"))),
    "uuid": (UUID, lambda n: uuid.UUID(int=n).bytes),
    "bool8": (pa.bool8(), lambda n: n % 100),
    "tensor": (pa.fixed_shape_tensor(pa.int16(), [2]), lambda n: [n, -n]),
    "decimal128": (pa.decimal128(20, 4), lambda n: Decimal(n * 7919 - 5) / 10_000),
    "decimal256": (pa.decimal256(60, 4), lambda n: Decimal(n * 7919 - 5) / 10_000),
    "date32": (pa.date32(), lambda n: BEGIN + n * DAY),
    "time64": (pa.time64("ns"), lambda n: n),
    "timestamp with zone": (pa.timestamp("us", "Europe/Berlin"), lambda n: MIDNIGHT + n * DAY),
    "timestamp": (pa.timestamp("ns"), lambda n: MIDNIGHT.replace(tzinfo=None) + n * DAY),
    "duration": (pa.duration("ms"), lambda n: n * DAY),
    "fixed bytes": (pa.binary(16), lambda n: b"%016d" % n),
    "odd fixed bytes": (pa.binary(3), lambda n: b"%03d" % n),
    "bool": (pa.bool_(), lambda n: n % 2 == 0),
    "half": (pa.float16(), np.float16),
    "string": (pa.string(), lambda n: f"string {n}"),
    "large string": (pa.large_string(), lambda n: f"string {n}"),
    "binary": (pa.binary(), lambda n: b"\xff%d" % n),
    "string view": (pa.string_view(), lambda n: f"a longer string {n}"),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), lambda n: f"item {n}"),
    "dictionary of bytes": (pa.dictionary(pa.uint32(), pa.binary()), lambda n: b"item %d" % n),
    "dictionary of integers": (pa.dictionary(pa.int32(), pa.int64()), lambda n: n << 40),
    "vector": (pa.list_(pa.float32(), 3), lambda n: [n, -n, 0.5]),
    "vector of dates": (pa.list_(pa.date32(), 2), lambda n: [BEGIN, BEGIN + n * DAY]),
    "null": (pa.null(), lambda _: None),
}
DISTRIBUTIONS: dict[str, Callable[[int], int | None]] = {
    "constant": lambda _: 3,
    "two": lambda row: row % 2,
    "seven": lambda row: row * 5 % 7,
    "three hundred": lambda row: row * 17 % 300,
    "runs": lambda row: row // 50 % ROWS,
    "sorted": lambda row: row % ROWS,
    "all null": lambda _: None,
    "some null": lambda row: None if row % 3 == 0 else row % 7,
    "constant or null": lambda row: None if row % 3 == 0 else 1,
}


# Inside of other types the values are encoded alike, so a few distributions show enough.
NESTED = ("constant", "three hundred", "some null")
IN_MAPS = ("seven", "all null")


def values(kind: pa.DataType, make: Callable[[int], Any], numbers: list[int | None]) -> pa.Array:
    """Build one value for each number, null for None."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, values(kind.storage_type, make, numbers))
    positions = pa.array(numbers, pa.int64())
    if pa.types.is_dictionary(kind):
        items = pa.array([make(number) for number in range(ROWS)], kind.value_type)
        return pa.DictionaryArray.from_arrays(positions.cast(kind.index_type), items)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return pa.array([None if one is None else make(one) for one in numbers], kind)
    return pa.array([make(number) for number in range(ROWS)], kind).take(positions)


def in_struct(array: pa.Array, version: str) -> pa.Array:
    """Put values into a struct, null in every eleventh row where the version allows it."""
    count = len(array)
    mask = None if version == "2.0" else pa.array(np.arange(count) % 11 == 0)
    fields = [pa.field("v", array.type), pa.field("n", pa.int64())]
    return pa.StructArray.from_arrays([array, pa.array(range(count))], fields=fields, mask=mask)


def columns(version: str, first: int, count: int) -> Iterator[tuple[str, pa.Array]]:
    """Build some rows of the columns that a file version can hold; lists have two items."""
    keys = pa.array([f"k{number % 2}" for number in range(2 * count)])
    bounds = pa.array(range(0, 2 * count + 1, 2), pa.int32())
    yield "id", pa.array(range(first, first + count))
    for name, (kind, make) in TYPES.items():
        is_nestable = version != "2.0" or not name.endswith("view")  # pylance fails there
        for distribution, number_of in DISTRIBUTIONS.items():
            numbers = [number_of(row) for row in range(first, first + 2 * count)]
            full = values(kind, make, numbers)
            place = f"{name}, {distribution}"
            yield place, full[:count]
            if distribution in NESTED and is_nestable:
                yield f"{place}, in a struct", in_struct(full[:count], version)
                yield f"{place}, in a list", pa.ListArray.from_arrays(bounds, full)
            if distribution in IN_MAPS and version == "2.2":
                yield f"{place}, in a map", pa.MapArray.from_arrays(bounds, keys, full)


@pytest.fixture(scope="module", params=[(one, who) for one in VERSIONS for who in WRITERS])
def written(request: Any, tmp_path_factory: Any) -> tuple[Path, pa.Table]:
    version, writer = request.param
    library = lance_nb if writer == "lance_nb" else require_pylance()
    path = tmp_path_factory.mktemp("types") / "data"
    parts = [pa.table(dict(columns(version, first, count))) for first, count in FRAGMENTS]
    for part in parts:
        library.write_dataset(part, str(path), data_storage_version=version, mode="append")
    return path, pa.concat_tables(parts)


def differences(got: pa.Table, expected: pa.Table) -> list[str]:
    """Name the columns of which types or values differ."""
    found = [] if got.column_names == expected.column_names else ["the columns differ"]
    for name in expected.column_names:
        mine, theirs = decoded(got[name]), decoded(expected[name])
        if not same(mine, theirs):
            found.append(f"{name}: {first_difference(mine, theirs)}")
    return found


def as_stored(table: pa.Table) -> pa.Table:
    """Return the columns as the format keeps them: it has no views."""
    for number, field in enumerate(table.schema):
        if "view" in str(field.type):
            kind = as_plain(field.type)
            table = table.set_column(number, field.name, table[field.name].cast(kind))
    return table


def as_plain(kind: pa.DataType) -> pa.DataType:
    """Replace views by plain strings."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, as_plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, as_plain(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(as_plain(kind.value_type))
    return pa.string() if pa.types.is_string_view(kind) else kind


READS: dict[str, Callable[[Any], pa.Table]] = {
    "all": lambda data: data.to_table(),
    "batches": lambda data: pa.Table.from_batches(data.scanner(batch_size=77).to_batches()),
    "take": lambda data: data.take([999, 0, 3, 3, 500]),
    "filter": lambda data: data.to_table(filter="id % 5 = 1", offset=100, limit=50),
    "fragment": lambda data: data.get_fragments()[1].to_table(filter="id = 700"),
    "fragment take": lambda data: data.get_fragments()[0].take([0, 7, 599]),
}


@pytest.mark.parametrize("read", READS)
def test_values_are_those_of_pylance(written: tuple[Path, pa.Table], read: str) -> None:
    path, _ = written
    expected = READS[read](require_pylance().dataset(path))
    found = READS[read](lance_nb.dataset(path))
    assert found.schema.equals(expected.schema)
    assert differences(found, expected) == []
    assert expected.num_rows


def test_files_alone_are_read_as_by_pylance(written: tuple[Path, pa.Table]) -> None:
    """Their JSON columns are bytes of JSONB."""
    lance = require_pylance()
    path = max((written[0] / "data").glob("*.lance"))
    ours, theirs = lance_nb.LanceFileReader(path), lance.file.LanceFileReader(str(path))
    assert ours.metadata().schema.equals(theirs.metadata().schema, check_metadata=True)
    for read in (lambda one: one.read_range(3, 300), lambda one: one.take_rows([0, 7, 399])):
        found, expected = (read(one).to_table() for one in (ours, theirs))
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert differences(found, expected) == []
    assert pa.types.is_large_binary(found.schema.field("json, two").type)


def test_columns_of_every_type_can_be_tested_for_null(written: tuple[Path, pa.Table]) -> None:
    path, _ = written
    ours, theirs = lance_nb.dataset(path), require_pylance().dataset(path)
    for name in TYPES:
        condition = f"`{name}, constant or null` is not null"
        assert ours.count_rows(condition) == theirs.count_rows(condition), name


def test_values_survive_rewriting(written: tuple[Path, pa.Table]) -> None:
    path, table = written
    data = lance_nb.dataset(path)
    table = as_stored(table)
    assert differences(data.to_table(), table) == []
    data.update({"id": "id + 1000"}, where="id < 20")
    data.optimize.compact_files()
    assert len(data.get_fragments()) == 1
    read = data.to_table()
    assert differences(read, require_pylance().dataset(path).to_table()) == []
    moved = pa.concat_tables([table[20:], table[:20]])
    assert differences(read.drop("id"), moved.drop("id")) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("number", [2, 7, 300])
def test_repeated_documents_are_searched(version: str, number: int, tmp_path: Path) -> None:
    lance = require_pylance()
    texts = pa.array([f'{{"k":{row % number}}}' for row in range(ROWS)])
    table = pa.table({"j": pa.ExtensionArray.from_storage(JSON, texts), "id": range(ROWS)})
    lance.write_dataset(table, tmp_path / "data", data_storage_version=version)
    ours, theirs = lance_nb.dataset(tmp_path / "data"), lance.dataset(tmp_path / "data")
    for condition in ("json_get_int(j, 'k') = 1", "json_extract(j, '$.k') = '0'"):
        found = ours.to_table(filter=condition)
        assert found.equals(theirs.to_table(filter=condition))
        assert found.num_rows
