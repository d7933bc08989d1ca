"""Rows to fragments: files, their folders, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.kernels import fsst_encode
from lance_nb.errors import (
    ArgumentError,
    InvalidInputError,
    NotSupportedError,
    SchemaMismatchError,
    StorageError,
)
from lance_nb.file.reader import FileReader
from lance_nb.file.writer import FileOptions
from lance_nb.format.fragment import DataFile
from lance_nb.format.schema import Schema
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.writing import fragment_writer
from lance_nb.writing.fragment_writer import (
    FilePlace,
    UncommittedFiles,
    WriteOptions,
    WriteProgress,
    joined_batches,
    unique_name,
    write_fragments,
)
from lance_nb.writing.input_data import reader_of
from tests.support.faulty_store import Fault, FaultyStore, on
from tests.support.reading import Columns, rows_of

TABLE = pa.table({"a": np.arange(1000), "b": [f"row {k}" for k in range(1000)]})
SCHEMA = Schema.from_arrow(TABLE.schema)


@pytest.fixture
def store() -> MemoryStore:
    clear("fragments")
    return MemoryStore("fragments")


def test_a_fragment_describes_its_file(store: MemoryStore):
    (fragment,) = write_fragments(TABLE.to_reader(), SCHEMA, store)
    assert (fragment.id, fragment.physical_rows) == (0, 1000)
    (file,) = fragment.files
    assert (file.fields, file.column_indices, file.file_version) == ((0, 1), (0, 1), (2, 2))
    assert store.size(file.location()) == file.size_bytes
    assert FileReader(store, file.location()).num_rows == 1000
    assert store.list_recursive("")[0].name == file.location()


@pytest.mark.parametrize("batch_rows", [7, 300, 1000])
def test_files_end_at_their_number_of_rows(store: MemoryStore, batch_rows: int):
    options = WriteOptions(max_rows_per_file=300)
    reader = TABLE.to_reader(max_chunksize=batch_rows)
    fragments = write_fragments(reader, SCHEMA, store, options)
    assert [one.physical_rows for one in fragments] == [300, 300, 300, 100]
    assert len({one.files[0].path for one in fragments}) == 4


def test_symbols_of_text_are_looked_for_once_for_all_files(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
):
    trained = []
    train = fsst_encode.train
    monkeypatch.setattr(fsst_encode, "train", lambda encode: trained.append(1) or train(encode))
    table = pa.table({"t": [f"a text of row {at * 7919 % 12_000:06}" for at in range(12_000)]})
    options = WriteOptions(max_rows_per_file=4000)
    found = write_fragments(table.to_reader(), Schema.from_arrow(table.schema), store, options)
    assert (len(found), len(trained)) == (3, 1)


def test_files_end_at_their_size(store: MemoryStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fragment_writer, "_RUN_BYTES", 1000)
    options = WriteOptions(max_bytes_per_file=3000, file=FileOptions(page_bytes=500))
    fragments = write_fragments(TABLE.to_reader(max_chunksize=50), SCHEMA, store, options)
    assert len(fragments) > 2
    assert sum(one.physical_rows for one in fragments) == 1000


def test_no_rows_make_no_fragment(store: MemoryStore):
    assert write_fragments(TABLE.slice(0, 0).to_reader(), SCHEMA, store) == []
    assert store.list_recursive("") == []


def test_dictionaries_of_batches_may_differ(store: MemoryStore):
    words = [pa.array([f"{k}", None, "x"]).dictionary_encode() for k in range(5)]
    source = (pa.record_batch({"d": one}) for one in words)
    schema = Schema.from_arrow(pa.schema([("d", words[0].type)]))
    (fragment,) = write_fragments(reader_of(source), schema, store)
    columns = Columns(pa.schema([("d", words[0].type)]))
    rows = rows_of((0, 15))
    found = columns.read(FileReader(store, fragment.files[0].location()), "d", rows)
    assert found.to_pylist() == [value for k in range(5) for value in (f"{k}", None, "x")]


def test_missing_columns_are_left_out_of_the_file(store: MemoryStore):
    (fragment,) = write_fragments(TABLE.select(["b"]).to_reader(), SCHEMA, store)
    assert fragment.files[0].fields == (1,)


def test_another_schema_is_refused_before_any_file(store: MemoryStore):
    with pytest.raises(SchemaMismatchError, match="'c' is not in the dataset"):
        write_fragments(TABLE.append_column("c", [TABLE["a"]]).to_reader(), SCHEMA, store)
    assert store.list_recursive("") == []


def broken(error: BaseException) -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=300)
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("the source broke")])
def test_a_source_that_breaks_leaves_nothing(store: MemoryStore, error: BaseException):
    options = WriteOptions(max_rows_per_file=200)
    with pytest.raises(type(error)):
        write_fragments(reader_of(broken(error)), SCHEMA, store, options)
    assert store.list_recursive("") == []


def test_a_callback_may_cancel(tmp_path: Path):
    def stop(progress: WriteProgress) -> None:
        if progress.num_files:
            raise KeyboardInterrupt

    options = WriteOptions(max_rows_per_file=200)
    with pytest.raises(KeyboardInterrupt):
        write_fragments(TABLE.to_reader(100), SCHEMA, LocalStore(str(tmp_path)), options, stop)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_full_disk_leaves_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch):
    real, calls = MemoryStore.write, []

    def full(self: MemoryStore, path: str, data: bytes) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise StorageError(path, "no space left on device")
        real(self, path, data)

    monkeypatch.setattr(MemoryStore, "write", full)
    with pytest.raises(StorageError):
        write_fragments(TABLE.to_reader(), SCHEMA, store, WriteOptions(max_rows_per_file=200))
    assert len(calls) == 3
    assert store.list_recursive("") == []


def test_progress_counts_rows_bytes_and_files(store: MemoryStore):
    seen: list[WriteProgress] = []
    options = WriteOptions(max_rows_per_file=400)
    write_fragments(TABLE.to_reader(max_chunksize=100), SCHEMA, store, options, seen.append)
    assert [one.num_rows for one in seen] == [400, 800, 1000, 1000]
    assert seen[-1].num_files == 3
    total = sum(info.size_bytes for info in store.list_recursive(""))
    assert seen[-1].size_bytes == total


@pytest.mark.parametrize("kwargs", [{"max_rows_per_file": 0}, {"max_bytes_per_file": -1}])
def test_limits_must_be_positive(kwargs: dict[str, int]):
    with pytest.raises(InvalidInputError, match="must be positive"):
        WriteOptions(**kwargs)


def test_versions_that_cannot_be_written_are_refused(store: MemoryStore):
    with pytest.raises(NotSupportedError):
        write_fragments(TABLE.to_reader(), SCHEMA, store, WriteOptions(file_version=(2, 3)))
    assert store.list_recursive("") == []


def test_names_never_meet():
    names = {unique_name() for _ in range(1000)}
    assert len(names) == 1000
    assert all(set(name[:24]) <= {"0", "1"} and name.endswith(".lance") for name in names)


@pytest.mark.parametrize("name", ["max_rows_per_file", "max_bytes_per_file"])
def test_limits_are_positive(name: str):
    WriteOptions(**{name: 1})
    with pytest.raises(InvalidInputError, match=f"{name} must be positive, not 0"):
        WriteOptions(**{name: 0})


@pytest.mark.parametrize(
    ("sizes", "run_bytes", "rows"),
    [
        ([10, 10, 10, 10], 20, [1, 2, 1]),
        ([10, 10, 10, 10], 1000, [4]),
        ([50, 1, 1, 50], 20, [3, 1]),
        ([0, 0, 0], 20, [3]),
    ],
)
def test_rows_with_large_payloads_are_written_in_runs(
    sizes: list[int], run_bytes: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
):
    """Whenever the sum of the sizes passes another multiple of the limit, a run ends."""
    batch = pa.record_batch({"b": range(len(sizes)), "n": range(len(sizes))})
    found = iter([np.array(sizes), None])
    monkeypatch.setattr(fragment_writer, "stored_bytes", lambda _: next(found))
    runs = list(fragment_writer._payload_runs(batch, run_bytes))
    assert [one.num_rows for one in runs] == rows
    assert pa.Table.from_batches(runs).equals(pa.Table.from_batches([batch]))


def test_rows_without_payloads_are_one_run():
    batch = TABLE.to_batches()[0]
    assert list(fragment_writer._payload_runs(batch, 1)) == [batch]


@pytest.mark.parametrize(("run_bytes", "count"), [(1 << 30, 1), (1000, None)])
def test_very_large_batches_are_cut(
    run_bytes: int, count: int | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fragment_writer, "_RUN_BYTES", run_bytes)
    batch = TABLE.to_batches()[0]
    runs = list(fragment_writer._runs(batch))
    expected = count or round(batch.nbytes / run_bytes)
    assert abs(len(runs) - expected) <= 1
    assert pa.Table.from_batches(runs).equals(pa.Table.from_batches([batch]))
    assert max(one.num_rows for one in runs) - min(one.num_rows for one in runs[:-1] or runs) == 0


def test_progress_is_a_function_or_an_object(store: MemoryStore):
    with pytest.raises(ArgumentError, match="not int"):
        write_fragments(TABLE.to_reader(), SCHEMA, store, progress=3)  # type: ignore[arg-type]
    assert store.list_recursive("") == []


def test_a_row_larger_than_a_run_is_a_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_writer, "_RUN_BYTES", 4)
    batch = pa.record_batch({"a": pa.array([1, 2, 3], pa.int64())})

    assert [one.num_rows for one in fragment_writer._runs(batch)] == [1, 1, 1]


SMALL = pa.table({"a": range(10)})


def places() -> tuple[FilePlace, ...]:
    for name in ("own", "base"):
        clear(name)
    return FilePlace(MemoryStore("own")), FilePlace(MemoryStore("base"), "", 3)


def test_paths_are_those_of_the_folder() -> None:
    own, base = places()
    assert (own.path("x"), own.name("data/x")) == ("data/x", "x")
    assert (base.path("x"), base.name("x")) == ("x", "x")


def test_files_go_to_the_places_in_turn() -> None:
    own, base = places()
    options = WriteOptions(max_rows_per_file=4, places=(base, own))
    schema = Schema.from_arrow(SMALL.schema)
    made = write_fragments(SMALL.to_reader(), schema, own.store, options)
    assert [one.files[0].base_id for one in made] == [3, None, 3]
    assert all(base.store.exists(one.files[0].path) for one in made[::2])
    assert own.store.exists(f"data/{made[1].files[0].path}")


def test_what_failed_leaves_no_file_in_any_place(monkeypatch: pytest.MonkeyPatch) -> None:
    own, base = places()
    options = WriteOptions(max_rows_per_file=2, places=(base, own))

    def stop(progress: object) -> None:
        if getattr(progress, "num_files", 0) >= 2:
            raise StorageError("x", "no room")

    with pytest.raises(StorageError):
        write_fragments(
            SMALL.to_reader(max_chunksize=2), Schema.from_arrow(SMALL.schema), own.store,
            options, stop,
        )  # fmt: skip
    assert own.store.list_recursive("") == base.store.list_recursive("") == []


def batches(*counts: int) -> list[pa.RecordBatch]:
    firsts = [sum(counts[:number]) for number in range(len(counts))]
    return [
        pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})
        for first, count in zip(firsts, counts, strict=True)
    ]


def test_small_batches_are_joined_up_to_the_rows_of_a_run() -> None:
    found = list(joined_batches(batches(3, 0, 4, 5, 1), 7, 1 << 20))
    assert [one.num_rows for one in found] == [7, 6]
    assert [n for one in found for n in one["n"].to_pylist()] == list(range(13))


def test_bytes_end_a_run_as_well() -> None:
    assert [one.num_rows for one in joined_batches(batches(2, 2, 2), 100, 32)] == [4, 2]


def test_a_large_batch_is_the_same_memory() -> None:
    (large,) = batches(1000)
    (found,) = joined_batches([large], 10, 1 << 20)
    assert found["n"].buffers()[1].address == large["n"].buffers()[1].address


def test_nothing_gives_nothing() -> None:
    assert list(joined_batches(batches(0, 0), 10, 10)) == []


def test_dictionaries_are_joined_and_may_have_null_items() -> None:
    parts = [
        pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array(keys, pa.int8()), items)})
        for keys, items in (([0, 1], pa.array(["a", None])), ([1, 0], pa.array(["b", "c"])))
    ]
    (found,) = joined_batches(parts, 10, 1 << 20)
    assert found.schema == parts[0].schema
    assert found["d"].to_pylist() == ["a", None, "c", "b"]


def test_batches_without_columns_keep_their_rows() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 3, [None]))
    assert [one.num_rows for one in joined_batches([rows, rows], 100, 100)] == [3, 3]


def test_dictionaries_that_are_too_many_together_are_not_joined() -> None:
    keys = pa.array(range(100), pa.int8())
    parts = [
        pa.record_batch(
            {"d": pa.DictionaryArray.from_arrays(keys, pa.array([f"{k}{n}" for n in range(100)]))}
        )
        for k in "ab"
    ]
    assert list(joined_batches(parts, 1000, 1 << 20)) == parts


FILE = DataFile("a.lance", (0,), (0,), 2, 2)


@pytest.mark.parametrize(("offered", "fails", "stays"), [
    (False, True, False), (True, True, True), (False, False, True),
])  # fmt: skip
def test_files_go_after_an_error_before_the_offer(offered: bool, fails: bool, stays: bool) -> None:
    store = MemoryStore(f"unoffered/{offered}-{fails}")
    store.write("data/a.lance", b"x")
    try:
        with UncommittedFiles(store) as files:
            files.add([FILE])
            if offered:
                files.offer()
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert fails
    assert bool(list(store.list_recursive("data"))) is stays


def test_a_file_that_is_gone_already_is_no_mistake() -> None:
    store = MemoryStore("unoffered/gone")
    with pytest.raises(KeyboardInterrupt), UncommittedFiles(store) as files:
        files.add([FILE])
        raise KeyboardInterrupt


def test_a_file_that_cannot_be_removed_does_not_hide_the_error_nor_the_others() -> None:
    inner = MemoryStore("unoffered/stuck")
    store = FaultyStore(inner, on("delete", "a.lance", Fault.ERROR_BEFORE))
    for name in ("a", "b"):
        inner.write(f"data/{name}.lance", b"x")
    with pytest.raises(KeyboardInterrupt), UncommittedFiles(store) as files:
        files.add([FILE, replace(FILE, path="b.lance")])
        raise KeyboardInterrupt
    assert [one.name for one in inner.list_recursive("data")] == ["a.lance"]
