"""Data files written by us are read by pylance, and by us, equal to the bit.

One file per (size, family, file version), with every shape of the family, and null patterns in
turns: about 430 columns per version and size, more than 6,000 in all. Rows lie around the borders
of chunks and pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import NotSupportedError
from tests.interop.matrix import FAMILIES, columns
from tests.support.written_files import differences, same_length, write_file

pytestmark = pytest.mark.interop
SEED = 23
VERSIONS = ("2.0", "2.1", "2.2")
# rows, bytes per page, rows per batch
SIZES = {
    "none": (0, 1 << 23, 1000),
    "one": (1, 1 << 23, 1000),
    "few": (7, 1 << 23, 3),
    "below a chunk": (1023, 1 << 23, 1000),
    "above a chunk": (1025, 15_000, 500),
    "chunks": (4097, 100_000, 4097),
}
NOT_IN_2_0 = ("one", "below a chunk", "chunks")  # it has no chunks


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
def test_what_we_write_reads_equal(size: str, family: str, tmp_path: Path) -> None:
    rows, page_bytes, batch_rows = SIZES[size]
    tables = same_length(columns(family, rows, "2.2", SEED, in_turns=True))
    wrong = []
    for version in VERSIONS[1:] if size in NOT_IN_2_0 else VERSIONS:
        for table in tables:
            part = storable(table, version)
            path = write_file(tmp_path, part, version, page_bytes, batch_rows)
            found = differences(path, part, np.random.default_rng([SEED, rows]))
            wrong += [f"{version}: {one}" for one in found]
    assert not wrong


def storable(table: pa.Table, version: str) -> pa.Table:
    """The columns that the version can hold: no maps before 2.2, no null structs in 2.0."""
    if version == "2.2":
        return table
    kept = {
        name: table.column(name).combine_chunks()
        for name in table.column_names
        if not any(map(pa.types.is_map, _types(table.column(name).type)))
    }
    if version == "2.0":
        kept = {name: structs_filled(array) for name, array in kept.items()}
    return pa.table(kept)


def _types(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for position in range(kind.num_fields):
        yield from _types(kind.field(position).type)


def structs_filled(array: Any) -> Any:
    """The same rows with structs of nulls where structs are null."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [structs_filled(one) for one in array.flatten()]
        return pa.StructArray.from_arrays(children, [field.name for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = structs_filled(array.values)
        if items is array.values or items.type == array.values.type:
            buffers = array.buffers()[:2]
            return pa.Array.from_buffers(
                kind, len(array), buffers, offset=array.offset, children=[items]
            )
    return array


@pytest.mark.parametrize("version", VERSIONS)
def test_long_columns_read_equal(version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    n = 300_000
    lists = np.concatenate(([0], np.cumsum(rng.integers(0, 5, n)))).astype(np.int32)
    mask = rng.random(n) < 0.1
    table = pa.table(
        {
            "int": pa.array(rng.integers(0, 1000, n), mask=mask),
            "wide": rng.integers(-(2**62), 2**62, n),
            "float": rng.random(n),
            "text": pa.array([f"row {k}" for k in range(n)]),
            "list": pa.ListArray.from_arrays(
                pa.array(lists), pa.array(rng.integers(0, 9, lists[-1]).astype("i4"))
            ),
            "bool": pa.array(rng.random(n) < 0.3, mask=mask),
        }
    )
    path = write_file(tmp_path, table, version, 1 << 20, 65_536)
    assert not differences(path, table, rng)


REFUSED = {
    "2.0": [
        pa.array([{"a": 1}, None]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
    ],
    "2.1": [
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        pa.array([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int8())]), 1)),
    ],
    "2.2": [pa.array([[[{"a": 1}]]], pa.list_(pa.list_(pa.struct([("a", pa.int8())]), 1)))],
}


@pytest.mark.parametrize(
    ("version", "array"), [(one, array) for one, arrays in REFUSED.items() for array in arrays]
)
def test_what_a_version_cannot_hold_is_refused(
    version: str, array: pa.Array, tmp_path: Path
) -> None:
    with pytest.raises(NotSupportedError, match=r"data_storage_version|inside"):
        write_file(tmp_path, pa.table({"c": array}), version, 1 << 20, 100)
    assert list(tmp_path.iterdir()) == []
