"""Pages of ours, in files, read by pylance: every kind of values, every option, both versions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.conformance.codec_tests import options
from tests.support.encoded_files import encode_column, write_file
from tests.support.leaf_values import MAKERS, make, with_nulls

pytestmark = pytest.mark.interop

VERSIONS = ("2.1", "2.2")
WISHES: dict[str, Mapping[str, str]] = {
    "default": {},
    "none": {"compression": "none"},
    "zstd": {"compression": "zstd", "compression-level": "1"},
    "lz4, split bytes": {"compression": "lz4", "bss": "on"},
    "fsst": {"compression": "fsst"},
    "fullzip": {"structural-encoding": "fullzip"},
    "miniblock": {"structural-encoding": "miniblock"},
}


def column_of_lists(items: pa.Array) -> pa.Array:
    """Return lists of the items, null and empty ones among them."""
    count = len(items)
    offsets = [0, 0, 3, 3, None, 4, *range(4, count, 17), count]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)


def written_columns(option: Mapping[str, str], size: int) -> dict[str, pa.Array]:
    """Return one column for each kind of values: plain, with nulls, and in lists."""
    columns: dict[str, pa.Array] = {}
    for kind in MAKERS:
        columns[kind] = make(kind, size)
        columns[f"{kind}, null"] = make(kind, size, 0.2, seed=2)
        if kind != "null" and not option and size >= 20:
            columns[f"lists of {kind}"] = column_of_lists(make(kind, size, 0.1, seed=3))
    return columns


def read(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """Let pylance read all rows, and some."""
    from lance.file import LanceFileReader

    count = len(next(iter(columns.values())))
    wanted = sorted({0, count - 1, *range(5, count, 97)})
    whole = LanceFileReader(str(path)).read_all().to_table()
    some = LanceFileReader(str(path)).take_rows(wanted).to_table()
    for name, array in columns.items():
        compare(whole.column(name).combine_chunks(), array, name)
        compare(some.column(name).combine_chunks(), array.take(pa.array(wanted)), name)


def compare(found: pa.Array, wanted: pa.Array, name: str) -> None:
    if pa.types.is_dictionary(wanted.type):
        assert found.to_pylist() == wanted.to_pylist(), name
    else:
        assert found.cast(wanted.type).equals(wanted), name


def write(
    path: Path, columns: Mapping[str, pa.Array], option: Mapping[str, str], version: str
) -> None:
    """Write every column as one page."""
    field_options = options(option, tuple(map(int, version.split("."))))
    metadata = {f"lance-encoding:{key}": value for key, value in option.items()}
    schema = pa.schema(
        [pa.field(name, array.type, metadata=metadata) for name, array in columns.items()]
    )
    pages = [[encode_column(array, field_options)] for array in columns.values()]
    write_file(path, schema, pages, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", WISHES)
def test_pylance_reads_every_kind_of_values(name: str, version: str, tmp_path: Path) -> None:
    for size in (1, 20, 2500):
        columns = written_columns(WISHES[name], size)
        lists = {kind: array for kind, array in columns.items() if kind.startswith("lists")}
        flat = {kind: array for kind, array in columns.items() if kind not in lists}
        for group in (flat, lists):
            if group:
                write(tmp_path / "pages.lance", group, WISHES[name], version)
                read(tmp_path / "pages.lance", group)


STRUCTS = {
    "numbers": pa.struct([("a", pa.int32()), ("b", pa.float64()), ("c", pa.int8())]),
    "wide": pa.struct([("a", pa.int64()), ("b", pa.binary(300))]),
    "strings": pa.struct([("a", pa.int32()), ("s", pa.string()), ("t", pa.large_binary())]),
    "vector": pa.struct([("a", pa.int32()), ("v", pa.list_(pa.float32(), 4))]),
}


def struct_values(type_: pa.StructType, count: int) -> pa.Array:
    values = {
        pa.int8(): lambda i: i % 100,
        pa.int32(): lambda i: i,
        pa.int64(): lambda i: -i,
        pa.float64(): lambda i: i / 2,
        pa.binary(300): lambda i: b"%03d" % (i % 10) * 100,
        pa.string(): lambda i: "text " * (i % 5),
        pa.large_binary(): lambda i: bytes([i % 256]) * 3,
        pa.list_(pa.float32(), 4): lambda i: [i, 1.0, 2.0, 3.0],
    }
    children = [
        pa.array([values[field.type](i) for i in range(count)], field.type) for field in type_
    ]
    return pa.StructArray.from_arrays(children, fields=list(type_))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", STRUCTS)
def test_pylance_reads_packed_structs(kind: str, version: str, tmp_path: Path) -> None:
    if version == "2.1" and kind in {"strings", "vector"}:
        pytest.skip("2.2 only")
    for size in (1, 2000):
        plain = struct_values(STRUCTS[kind], size)
        nulls = with_nulls(plain, 0.3, np.random.default_rng(1))
        columns = {"plain": plain, "nulls": nulls}
        write(tmp_path / "pages.lance", columns, {"packed": "true"}, version)
        read(tmp_path / "pages.lance", columns)


@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_several_pages_and_columns(version: str, tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    field_options = options({}, tuple(map(int, version.split("."))))
    kinds = ["int64, ten bits", "string, words", "bool"]
    pages = []
    table = {}
    for kind in kinds:
        parts = [make(kind, size, 0.1, seed=size) for size in (10, 3000, 1)]
        pages.append([encode_column(part, field_options) for part in parts])
        table[kind] = pa.chunked_array(parts)
    schema = pa.schema([pa.field(kind, table[kind].type) for kind in kinds])
    write_file(tmp_path / "file.lance", schema, pages, version)
    found = LanceFileReader(str(tmp_path / "file.lance")).read_all(batch_size=700).to_table()
    assert found.combine_chunks().equals(pa.table(table).combine_chunks())
