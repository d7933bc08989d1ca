"""Data files and datasets of version 2.0, written by pylance, read equal to the bit.

One table per shape of values, with a column per null pattern; the reference refuses to write a few
columns (maps, null structs), which are left out and counted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb._pb import table as table_pb
from lance_nb.file.opening import open_data_file
from lance_nb.file.reader import FileReader
from lance_nb.storage.registry import open_store
from lance_nb.table.single_file import open_single_file
from tests.interop.matrix import FAMILIES, PATTERNS, columns, with_nulls
from tests.interop.predicates import filtered_differences
from tests.support.reading import (
    RemoteLikeStore,
    decoded,
    file_differences,
    row_sets,
    same,
)
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
SEED = 20
FILE = "x.lance"
SIZES = (0, 1, 7, 1025, 4097, 20_000)
# How many columns of a family pylance can write, so that nothing is left out unnoticed.
WRITTEN = {"nested": 0.6}
REFUSED = ("does not encode struct validity", "no field encoding", "Not supported")


def write_file(folder: Path, table: pa.Table) -> bool:
    """Write one 2.0 file; tell whether the reference accepts such values."""
    require_pylance()
    from lance.file import LanceFileWriter

    folder.mkdir()
    try:
        with LanceFileWriter(str(folder / FILE), table.schema, version="2.0") as writer:
            for batch in table.to_batches(max_chunksize=4000):
                # The reference panics at some slices of nested arrays: hand it copies.
                writer.write_batch(batch.take(pa.array(range(batch.num_rows))))
    except (OSError, ValueError, NotImplementedError) as exc:
        if not any(text in str(exc) for text in REFUSED):
            raise
        return False
    return True


def tables(family: str, size: int) -> Iterator[pa.Table]:
    """One table per shape, with one column per null pattern."""
    found = list(columns(family, size, "2.1", SEED))
    for first in range(0, len(found), len(PATTERNS)):
        yield pa.table(dict(found[first : first + len(PATTERNS)]))


def check(folder: Path, table: pa.Table) -> list[str]:
    local = open_data_file(open_store(str(folder)), FILE)
    remote = open_data_file(RemoteLikeStore(open_store(str(folder)), 4096), FILE)
    rng = np.random.default_rng([SEED, table.num_rows])
    wrong = []
    for reader in (local, remote):
        assert isinstance(reader, FileReader)
        assert reader.file_version == (2, 0)
        assert reader.num_rows == table.num_rows
        for rows in row_sets(rng, table.num_rows):
            wrong += file_differences(reader, table, rows)
    snapshot = open_single_file(folder / FILE).snapshot
    return [*wrong, *filtered_differences(snapshot, table, rng, share=len(PATTERNS))]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
def test_a_file_of_pylance_reads_equal(size: int, family: str, tmp_path: Path) -> None:
    wrong, asked, written = [], 0, 0
    for number, table in enumerate(tables(family, size)):
        asked += 1
        # Some patterns make null structs: then try the column without outer nulls.
        for part in (table, table.select(table.column_names[:1])):
            folder = tmp_path / f"{number} of {part.num_columns}"
            if write_file(folder, part):
                written += 1
                wrong += check(folder, part)
                break
    assert not wrong
    assert written >= WRITTEN.get(family, 1.0) * asked


# --- nesting that 2.0 can store -----------------------------------------------------------------

Build = Callable[[Any, int], pa.Array]


def numbers(rng: Any, n: int) -> pa.Array:
    return pa.array(rng.integers(-99, 99, n).astype(np.int32), mask=rng.random(n) < 0.2)


def texts(rng: Any, n: int) -> pa.Array:
    words = [f"{'word' * int(k)} {k}" if k else "" for k in rng.integers(0, 7, n)]
    return pa.array(words, mask=rng.random(n) < 0.2)


def flags(rng: Any, n: int) -> pa.Array:
    return pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.2)


def vectors(rng: Any, n: int) -> pa.Array:
    items = pa.array(rng.random(3 * n).astype(np.float32), mask=rng.random(3 * n) < 0.1)
    return pa.FixedSizeListArray.from_arrays(items, 3, mask=pa.array(rng.random(n) < 0.2))


def structs(**fields: Build) -> Build:
    return lambda rng, n: pa.StructArray.from_arrays(
        [one(rng, n) for one in fields.values()], list(fields)
    )


def lists(items: Build, *, large: bool = False) -> Build:
    """Lists of 0 to 4 items with null and empty lists; items in null lists are skipped."""
    array = pa.LargeListArray if large else pa.ListArray

    def build(rng: Any, n: int) -> pa.Array:
        counts = rng.integers(0, 5, n) * (rng.random(n) < 0.8)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        inner = items(rng, int(offsets[-1]))
        built = array.from_arrays(pa.array(offsets, "int64" if large else "int32"), inner)
        return with_nulls(built, (counts == 0) & (rng.random(n) < 0.5))

    return build


def nothing(rng: Any, n: int) -> pa.Array:
    return pa.array([{}] * n, pa.struct([]))


NESTED: dict[str, Build] = {
    "list of struct": lists(structs(x=numbers, y=texts)),
    "large list of struct": lists(structs(x=flags, y=vectors), large=True),
    "struct of list": structs(a=lists(numbers), b=texts, c=structs(d=lists(texts), e=flags)),
    "list of struct of list": lists(structs(a=lists(numbers), b=numbers)),
    "list of list of list": lists(lists(lists(texts))),
    "list of list of struct": lists(lists(structs(x=numbers, y=lists(vectors)))),
    "list of vectors": lists(vectors),
    "empty struct": nothing,
    "list of empty struct": lists(nothing),
}


@pytest.mark.parametrize("size", [1, 7, 1025, 9000])
@pytest.mark.parametrize("name", NESTED)
def test_nesting_reads_equal(name: str, size: int, tmp_path: Path) -> None:
    table = pa.table({name: NESTED[name](np.random.default_rng([SEED, size]), size)})

    assert write_file(tmp_path / "f", table)
    assert not check(tmp_path / "f", table)


FORCED = {
    "zstd": {"lance-encoding:compression": "zstd"},
    "zstd 9": {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "9"},
    "lz4": {"lance-encoding:compression": "lz4"},
    "fsst": {"lance-encoding:compression": "fsst"},
    "none": {"lance-encoding:compression": "none"},
    "packed": {"packed": "true"},
}


@pytest.mark.parametrize("forced", FORCED)
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.int64()])
def test_forced_encodings_read_equal(kind: pa.DataType, forced: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    values = [str(int(k)) * 3 for k in rng.integers(1, 10**6, 5000)]
    array = pa.array(values, pa.string(), mask=rng.random(5000) < 0.1).cast(kind)
    field = pa.field("c", kind, metadata=FORCED[forced])
    table = pa.table([array], schema=pa.schema([field]))

    if forced == "fsst" and kind == pa.large_string():
        pytest.skip("pylance 14.0.2 panics when it writes large strings as fsst to 2.0")
    assert write_file(tmp_path / "f", table)
    assert not check(tmp_path / "f", table)


def test_packed_structs_read_equal(tmp_path: Path) -> None:
    kind = pa.struct([("a", pa.int8()), ("b", pa.float64()), ("c", pa.list_(pa.int16(), 3))])
    rows = [{"a": i % 100, "b": i / 3, "c": [i, -i, 7]} for i in range(3000)]
    field = pa.field("p", kind, metadata={"packed": "true"})
    table = pa.table([pa.array(rows, kind)], schema=pa.schema([field]))
    lance = require_pylance()
    lance.write_dataset(table, tmp_path / "d", data_storage_version="2.0", max_rows_per_file=1100)
    ours = lance_nb.dataset(str(tmp_path / "d"))

    assert same(ours.to_table()["p"], table["p"])
    taken = ours.take([2999, 3, 1100, 3])
    assert taken["p"].to_pylist() == [rows[i] for i in (2999, 3, 1100, 3)]


def test_blob_columns_read_as_descriptions(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = [None if i % 7 == 3 else bytes([i % 256]) * (i % 50) for i in range(500)]
    table = pa.table([pa.array(payloads, pa.large_binary())], schema=pa.schema([field]))
    lance = require_pylance()
    theirs = lance.write_dataset(table, tmp_path / "d", data_storage_version="2.0")

    ours = lance_nb.dataset(str(tmp_path / "d")).to_table()
    assert ours.equals(theirs.to_table())
    raw = next((tmp_path / "d" / "data").iterdir()).read_bytes()
    found = [
        None if not one["size"] and one["position"] else raw[one["position"] :][: one["size"]]
        for one in ours["b"].to_pylist()
    ]
    assert found == payloads


def test_blob_payloads_read_equal(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = [None if i % 7 == 3 else bytes([i % 256]) * (i % 50) for i in range(500)]
    table = pa.table([pa.array(payloads, pa.large_binary())], schema=pa.schema([field]))

    assert write_file(tmp_path / "f", table)
    assert not check(tmp_path / "f", table)


# --- datasets ------------------------------------------------------------------------------------


def everything(rng: Any, n: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(np.arange(n)),
            "n": numbers(rng, n),
            "t": texts(rng, n),
            "l": lists(structs(x=numbers, y=texts))(rng, n),
            "s": structs(a=lists(numbers), b=flags)(rng, n),
            "v": vectors(rng, n),
            "d": texts(rng, n).dictionary_encode(),
        }
    )


def equal(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> bool:
    return ours.type == theirs.type and same(decoded(ours), decoded(theirs))


def test_a_dataset_with_a_past_reads_as_pylance_reads_it(tmp_path: Path) -> None:
    lance = require_pylance()
    rng = np.random.default_rng(SEED)
    uri = str(tmp_path / "d")
    lance.write_dataset(everything(rng, 3000), uri, data_storage_version="2.0")
    lance.write_dataset(everything(rng, 1500), uri, mode="append", max_rows_per_file=700)
    theirs = lance.dataset(uri)
    theirs.delete("id % 5 = 2")
    theirs.add_columns({"twice": "n * 2"})
    theirs.drop_columns(["v"])
    theirs.alter_columns({"path": "n", "data_type": pa.int64()})
    for version in range(1, theirs.version + 1):
        old, ours = lance.dataset(uri, version=version), lance_nb.dataset(uri, version=version)
        assert ours.data_storage_version == old.data_storage_version == "2.0"
        expected = old.to_table()
        got = ours.to_table()
        assert got.schema.equals(expected.schema, check_metadata=True)
        assert all(equal(got[name], expected[name]) for name in expected.column_names), version
        picked = rng.integers(0, expected.num_rows, 60).tolist()
        pairs = [
            (ours.take(picked), old.take(picked)),
            (ours.to_table(limit=700, offset=1111), old.to_table(limit=700, offset=1111)),
        ]
        pairs += [
            (ours.to_table(columns=names), old.to_table(columns=names))
            for names in (["id"], ["t", "s"], ["l", "id"], ["s.a", "n"], ["d"])
        ]
        for mine, their in pairs:
            assert mine.column_names == their.column_names
            assert all(equal(mine[name], their[name]) for name in their.column_names)


def test_pages_are_listed_with_their_encodings(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "d")
    lance.write_dataset(everything(np.random.default_rng(3), 50), uri, data_storage_version="2.0")
    ours = lance_nb.dataset(uri)
    pages = ours.inspect.pages(ours.inspect.data_files()["path"][0].as_py())
    encodings = dict(zip(pages["name"].to_pylist(), pages["encoding"].to_pylist(), strict=True))

    assert encodings["id"] == "flat[64]"
    assert encodings["n"] == "nullable(flat[32])"
    assert encodings["l"] == "list(flat[64])"
    assert encodings["s"] == "struct"
    assert encodings["t"] == "binary(flat[64], flat[8])"
    assert encodings["d"] == "dictionary(flat[32], binary(flat[64], flat[8]))"


def test_files_of_several_versions_read_as_one_dataset(tmp_path: Path) -> None:
    lance = require_pylance()
    from lance.fragment import write_fragments

    rng = np.random.default_rng(SEED)
    uri = str(tmp_path / "d")
    lance.write_dataset(everything(rng, 400), uri, data_storage_version="2.0")
    for version in ("2.1", "2.2"):
        fragments = write_fragments(everything(rng, 300), uri, data_storage_version=version)
        append = lance.LanceOperation.Append(fragments)
        lance.LanceDataset.commit(uri, append, read_version=lance.dataset(uri).version)
    theirs, ours = lance.dataset(uri), lance_nb.dataset(uri)
    found = ours.inspect.data_files()["file_version"].to_pylist()

    assert found == ["2.0", "2.1", "2.2"]
    assert ours.data_storage_version == theirs.data_storage_version
    expected, got = theirs.to_table(), ours.to_table()
    assert all(equal(got[name], expected[name]) for name in expected.column_names)


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("flag", [0, 4])
def test_manifests_that_do_not_say_the_version(
    version: str, rows: int, flag: int, tmp_path: Path
) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "d")
    table = pa.table({"a": pa.array(range(rows), pa.int64())})
    lance.write_dataset(table, uri, data_storage_version=version)
    (path,) = (tmp_path / "d" / "_versions").glob("*.manifest")
    data = path.read_bytes()
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    manifest = table_pb.Manifest.FromString(data[position + 4 : position + 4 + size])
    manifest.ClearField("data_format")
    manifest.writer_feature_flags |= flag
    raw = manifest.SerializeToString()
    path.write_bytes(data[:position] + struct.pack("<I", len(raw)) + raw + data[-16:])

    theirs, ours = lance.dataset(uri), lance_nb.dataset(uri)
    assert ours.data_storage_version == theirs.data_storage_version
    assert ours.to_table().equals(theirs.to_table())
