"""What pylance's API does beyond its names: the same calls, made in both libraries, agree."""

# ruff: noqa: ARG005, FURB192, S301 (tables of calls that take the same arguments)

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = pa.table({"a": pa.array(range(100)), "b": pa.array([i / 2 for i in range(100)])})
Outcome = tuple[str, Any]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two versions, three fragments, some rows deleted."""
    place = str(tmp_path_factory.mktemp("api") / "api.lance")
    require_pylance().write_dataset(ROWS, place, max_rows_per_file=40)
    require_pylance().dataset(place).delete("a % 10 = 3")
    return place


def outcome(call: Callable[[], Any]) -> Outcome:
    """Return what a call returned, or the class of error that it raised."""
    try:
        value = call()
    except Exception as error:  # noqa: BLE001 - errors are compared
        builtin = next(one for one in type(error).__mro__ if one.__module__ == "builtins")
        return "raised", builtin
    return "returned", value.to_pydict() if isinstance(value, pa.Table) else value


def agree(theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Check that both return the same; an error of ours is also one of theirs."""
    wanted, found = outcome(theirs), None
    if wanted[0] == "returned":
        assert outcome(ours) == wanted
        return
    try:
        ours()
    except Exception as error:  # noqa: BLE001 - errors are compared
        found = error
    assert found is not None, f"{wanted[1]} expected"
    assert isinstance(found, wanted[1])


def shape(value: Any) -> Any:
    """Return the types of a nested value."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value)


# --- default_scan_options -------------------------------------------------------------------------

DEFAULTS: list[dict[str, Any]] = [
    {"with_row_id": True, "columns": ["a"], "limit": 3},
    {"filter": "a < 5"},
    {"offset": 95},
    {"with_row_address": True},
    {"batch_size": 30},
    {"nope": 1},
    {"fragments": []},  # the builder's method is with_fragments
    {"limit": -1},
    {},
]
READS: dict[str, Callable[[Any], Any]] = {
    "schema": lambda ds: ds.schema,
    "to_table": lambda ds: ds.to_table(),
    "other columns": lambda ds: ds.to_table(["b"]),
    "other filter": lambda ds: ds.to_table(filter="a > 90"),
    "to_batches": lambda ds: [batch.to_pydict() for batch in ds.to_batches()],
    "head": lambda ds: ds.head(5),
    "slice": lambda ds: ds.slice(1, 3),
    "to_pandas": lambda ds: ds.to_pandas().to_dict("list"),
    "scanner schema": lambda ds: ds.scanner().projected_schema,
    "dataset schema": lambda ds: ds.scanner().dataset_schema,
    "count_rows": lambda ds: ds.count_rows(),
    "count_rows of a filter": lambda ds: ds.count_rows("a < 10"),
    "take": lambda ds: ds.take([0, 1]),
    "fragment": lambda ds: ds.get_fragments()[0].to_table(),
    "fragment schema": lambda ds: ds.get_fragments()[0].schema,
    "other version": lambda ds: ds.checkout_version(1).to_table(),
    "pickled": lambda ds: pickle.loads(pickle.dumps(ds)).to_table(),
    "copied": lambda ds: copy.copy(ds).to_table(),
}


@pytest.mark.parametrize("defaults", DEFAULTS, ids=str)
def test_default_scan_options_reach_the_same_reads(uri: str, defaults: dict[str, Any]) -> None:
    lance = require_pylance()
    for name, read in READS.items():
        theirs = outcome(lambda r=read: r(lance.dataset(uri, default_scan_options=defaults)))
        try:
            agree(
                lambda r=read: r(lance.dataset(uri, default_scan_options=defaults)),
                lambda r=read: r(lance_nb.dataset(uri, default_scan_options=defaults)),
            )
        except AssertionError as error:
            raise AssertionError(f"{name}: {theirs}") from error


@pytest.mark.parametrize("value", ["7", "x", None])
def test_default_batch_size_of_the_environment(
    uri: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance = require_pylance()
    if value is not None:
        monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", value)
    warned = pytest.warns(UserWarning, match="number of rows")
    with warned if value == "x" else contextlib.nullcontext():
        ours = lance_nb.dataset(uri)
        for given in ({}, {"batch_size": 25}, {"columns": ["a"], "batch_size": 9}):
            sizes = [
                [batch.num_rows for batch in ds.get_fragments()[0].to_batches(**given)]
                for ds in (lance.dataset(uri), ours)
            ]
            assert sizes[0] == sizes[1]


# --- commit_lock ----------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "delete": lambda lib, ds: ds.delete("a = 1"),
    "update": lambda lib, ds: ds.update({"b": "b + 1"}, "a = 2"),
    "insert": lambda lib, ds: ds.insert(ROWS),
    "settings": lambda lib, ds: ds.update_config({"x": "1"}),
    "columns": lambda lib, ds: ds.add_columns({"c": "a * 2"}),
    "merge": lambda lib, ds: ds.merge_insert("a").when_matched_update_all().execute(ROWS),
    "commit": lambda lib, ds: lib.LanceDataset.commit(
        ds, lib.LanceOperation.Append([]), ds.version
    ),
    "other version": lambda lib, ds: ds.checkout_version(1).restore(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_lock_of_a_dataset_is_held_by_its_commits(change: str, tmp_path: Path) -> None:
    held: dict[str, list[int]] = {}
    for lib in (require_pylance(), lance_nb):
        calls: list[int] = []

        @contextlib.contextmanager
        def lock(version: int, calls: list[int] = calls) -> Iterator[None]:
            calls.append(version)
            yield

        place = str(tmp_path / lib.__name__)
        lib.write_dataset(ROWS, place)
        CHANGES[change](lib, lib.dataset(place, commit_lock=lock))
        held[lib.__name__] = calls

    assert held["lance"] == held["lance_nb"] == [2]


def test_commit_takes_its_arguments_by_position(tmp_path: Path) -> None:
    lance = require_pylance()
    for lib in (lance, lance_nb):
        place = str(tmp_path / lib.__name__)
        ds = lib.write_dataset(ROWS, place)
        calls: list[int] = []
        lock = lambda version, calls=calls: calls.append(version) or contextlib.nullcontext()
        append = lib.LanceOperation.Append([])
        made = lib.LanceDataset.commit(place, append, ds.version, lock, None, True, False, 3)
        assert (made.version, calls) == (2, [2])
        with pytest.raises(TypeError):
            lib.LanceDataset.commit(place, append, made.version, 3)


# --- constructors and sessions --------------------------------------------------------------------

CALLS: dict[str, Callable[[Any, str], Any]] = {
    "dataset": lambda lib, uri: lib.LanceDataset(uri).version,
    "dataset at a version": lambda lib, uri: lib.LanceDataset(uri, 1).version,
    "dataset with defaults": lambda lib, uri: lib.LanceDataset(
        uri, default_scan_options={"limit": 2}
    ).to_table(),
    "no uri": lambda lib, uri: lib.dataset(),
    "number as uri": lambda lib, uri: lib.dataset(3),
    "version that is not there": lambda lib, uri: lib.dataset(uri, 99),
    "tag that is not there": lambda lib, uri: lib.dataset(uri, "nope"),
    "session that is none": lambda lib, uri: lib.dataset(uri, session=3),
    "writes without a uri": lambda lib, uri: lib.write_dataset(ROWS),
    "writes with a lock that is none": lambda lib, uri: lib.write_dataset(
        ROWS, uri, mode="append", commit_lock=3
    ),
    "fragment": lambda lib, uri: lib.LanceFragment(lib.dataset(uri), 1).count_rows(),
    "fragment without an id": lambda lib, uri: lib.LanceFragment(lib.dataset(uri), None),
    "fragments by position": lambda lib, uri: lib.dataset(uri).get_fragments()[0].to_table(
        ["a"], "a < 4", 2, 1, True, True
    ),
    "fragment ids": lambda lib, uri: lib.dataset(uri).fragment_ids() == {0, 1, 2},
    "fragment ids in order": lambda lib, uri: list(lib.dataset(uri).fragment_ids()),
    "set operations": lambda lib, uri: sorted(lib.dataset(uri).fragment_ids() | {7}),
    "validate": lambda lib, uri: lib.dataset(uri).get_fragments()[0].validate(),
    "open_session": lambda lib, uri: lib.dataset(uri).get_fragments()[1].open_session(
        ["b"], True
    ).take([0, 2]),
    "open_session of all": lambda lib, uri: lib.dataset(uri).get_fragments()[1].open_session().take(
        [3]
    ),
    "from_dataset": lambda lib, uri: lib.LanceScanner.from_dataset(lib.dataset(uri), columns=["a"]),
    "from_fragment": lambda lib, uri: lib.LanceScanner.from_fragment(1),
    "from_batches": lambda lib, uri: lib.LanceScanner.from_batches([], schema=None),
    "take a negative position": lambda lib, uri: lib.dataset(uri).take([-1]),
    "take past the end": lambda lib, uri: lib.dataset(uri).take([1, 10**6]),
    "take a text": lambda lib, uri: lib.dataset(uri).take(["a"]),
    "take past the end of a fragment": lambda lib, uri: lib.dataset(uri).get_fragments()[0].take(
        [0, 99]
    ),
    "deletion file": lambda lib, uri: lib.dataset(uri).get_fragments()[0].deletion_file(),
    "versions": lambda lib, uri: shape(lib.dataset(uri).versions()),
    "version": lambda lib, uri: shape(lib.dataset(uri).get_version()),
    "version refs": lambda lib, uri: lib.dataset(uri).version_refs(),
    "counts": lambda lib, uri: lib.dataset(uri).stats.dataset_stats(),
    "bytes": lambda lib, uri: [
        (field.id, field.bytes_on_disk) for field in lib.dataset(uri).stats.data_stats().fields
    ],
    "fragment is no value": lambda lib, uri: (
        (ds := lib.dataset(uri)).get_fragments()[0] == ds.get_fragments()[0]
    ),
    "metadata is a value": lambda lib, uri: (
        (ds := lib.dataset(uri)).get_fragments()[0].metadata == ds.get_fragments()[0].metadata
    ),
    "dataset is no value": lambda lib, uri: lib.dataset(uri) == lib.dataset(uri),
    "dataset is iterated": lambda lib, uri: iter(lib.dataset(uri)),
    "length": lambda lib, uri: len(lib.dataset(uri)),
    "no tag": lambda lib, uri: lib.dataset(uri).tags.get_version("nope"),
    "no branch": lambda lib, uri: lib.dataset(uri).branches.delete("nope"),
    "no index": lambda lib, uri: lib.dataset(uri).stats.index_stats("nope"),
    "no column": lambda lib, uri: lib.dataset(uri).drop_columns(["nope"]),
    "no transaction": lambda lib, uri: lib.dataset(uri).read_transaction(999),
    "create over a dataset": lambda lib, uri: lib.write_dataset(ROWS, uri),
    "mode that is none": lambda lib, uri: lib.write_dataset(ROWS, uri, mode="nope"),
    "no partitions": lambda lib, uri: lib.dataset(uri).partition_expression,
    "no join": lambda lib, uri: lib.dataset(uri).join(lib.dataset(uri), "a"),
    "count under a limit": lambda lib, uri: lib.dataset(uri).scanner(limit=5).count_rows(),
    "one column as text": lambda lib, uri: lib.dataset(uri).to_table("a"),
    "negative limit": lambda lib, uri: lib.dataset(uri).to_table(limit=-1),
    "no readahead": lambda lib, uri: lib.dataset(uri).to_table(batch_readahead=0),
    "fragments that are none": lambda lib, uri: lib.dataset(uri).scanner(fragments=[1]),
    "scan by position": lambda lib, uri: lib.dataset(uri).scanner(
        ["a"], "a < 9", 3, 2, None, 2
    ).to_table(),
    "table by position": lambda lib, uri: lib.dataset(uri).to_table(["a"], pc.field("a") < 9, 3),
    "order": lambda lib, uri: lib.dataset(uri).to_table(["b"], order_by=["b"], limit=3),
    "session is shared": lambda lib, uri: lib.dataset(
        uri, session=(session := lib.dataset(uri).session())
    ).session().is_same_as(session),
    "session is kept": lambda lib, uri: (
        (ds := lib.dataset(uri)).checkout_version(1).session().is_same_as(ds.session())
    ),
    "session is another": lambda lib, uri: lib.dataset(uri).session().is_same_as(
        lib.dataset(uri).session()
    ),
    "no storage options": lambda lib, uri: (
        (ds := lib.dataset(uri)).initial_storage_options,
        ds.latest_storage_options(),
        ds.storage_options_accessor,
    ),
    "reads are counted": lambda lib, uri: (
        (ds := lib.dataset(uri)).to_table().num_rows,
        (first := ds.io_stats_incremental()).read_iops > 0,
        first.read_bytes > 0,
        ds.io_stats_snapshot().written_bytes,
    ),
    "statistics": lambda lib, uri: (
        (found := []),
        lib.dataset(uri).scanner(["a"], "a < 9", scan_stats_callback=found.append).to_table(),
        len(found),
        found[0].bytes_read > 0,
        found[0].indices_loaded,
    )[2:],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_does_as_in_pylance(name: str, uri: str) -> None:
    call = CALLS[name]

    agree(lambda: call(require_pylance(), uri), lambda: call(lance_nb, uri))


def test_builder_has_the_options_of_pylance_as_methods(uri: str) -> None:
    from importlib import import_module

    theirs = import_module("lance.dataset").ScannerBuilder(require_pylance().dataset(uri))
    ours = lance_nb.ScannerBuilder(lance_nb.dataset(uri))
    missing = {"minhash_search"}  # full-text search

    assert {name for name in dir(theirs) if not name.startswith("_")} - missing <= set(dir(ours))
    options = {"columns": ["a"], "filter": "a < 9", "limit": 3, "offset": 1, "with_row_id": True}
    for builder in (theirs, ours):
        builder.apply_defaults(options).batch_size(2).with_row_address()
    assert ours.to_scanner().to_table().equals(theirs.to_scanner().to_table())


# --- merge_insert, in the three forms for rows in memory ------------------------------------------


def test_batches_forms_of_merge_insert(tmp_path: Path) -> None:
    counts = []
    for lib in (require_pylance(), lance_nb):
        place = str(tmp_path / lib.__name__)
        ds = lib.write_dataset(ROWS, place)
        rows = pa.table({"a": pa.array([1, 200]), "b": pa.array([9.0, 9.0])})

        def merge(ds: Any = ds) -> Any:
            return ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()

        transaction, planned = merge().execute_uncommitted_batches(rows)
        plan = merge().analyze_plan_batches(rows)
        done = merge().execute_batches(rows)
        counts.append((done, planned, type(transaction).__name__, ds.version, ds.count_rows()))
        assert isinstance(plan, str)

    assert counts[0][0] == counts[1][0] == dict.fromkeys(counts[0][0], 0) | {
        "num_inserted_rows": 1, "num_updated_rows": 1,
    }  # fmt: skip
    assert counts[0][2:] == counts[1][2:]


# --- files ----------------------------------------------------------------------------------------

FILE_CALLS: dict[str, Callable[[Any], Any]] = {
    "list": lambda session: sorted(session.list()),
    "list a folder": lambda session: sorted(session.list("data")),
    "list no folder": lambda session: session.list("nope"),
    "list with delimiter": lambda session: (
        sorted((found := session.list_with_delimiter()).common_prefixes), found.objects,
    ),
    "list a folder with delimiter": lambda session: (
        (found := session.list_with_delimiter("data")).common_prefixes, sorted(found.objects),
    ),
    "contains": lambda session: [session.contains(one) for one in ("nope", session.list()[0])],
    "leaves the place": lambda session: session.contains("../x"),
    "read": lambda session: session.read_range(sorted(session.list("data"))[0], 0, 16),
    "read nothing": lambda session: session.read_range(sorted(session.list("data"))[0], 5, 0),
    "read past the end": lambda session: session.read_range(session.list("data")[0], 0, 10**6),
    "read what is not there": lambda session: session.read_range("nope", 0, 1),
    "delete what is not there": lambda session: session.delete_file("nope"),
    "open what is not there": lambda session: session.open_reader("nope"),
    "download what is not there": lambda session: session.download_file("nope", "/dev/null"),
    "upload what is not there": lambda session: session.upload_file("/no/such/file", "x"),
    "rows": lambda session: session.open_reader(
        sorted(session.list("data"))[0], columns=["a"]
    ).read_all(batch_readahead=2).to_table().num_rows,
}  # fmt: skip


@pytest.mark.parametrize("name", FILE_CALLS)
def test_a_file_session_does_as_in_pylance(name: str, uri: str) -> None:
    call = FILE_CALLS[name]

    agree(
        lambda: call(require_pylance().dataset(uri).new_file_session()),
        lambda: call(lance_nb.dataset(uri).new_file_session()),
    )


def test_a_file_session_writes_and_copies(tmp_path: Path) -> None:
    session = lance_nb.LanceFileSession(tmp_path)
    rows = pa.record_batch({"q": pa.array([1, 2])})
    with session.open_writer("data/new.lance", schema=rows.schema) as writer:
        writer.write_batch(rows)
    session.download_file("data/new.lance", tmp_path / "copy")
    session.upload_file(tmp_path / "copy", "up/load.lance")
    theirs = require_pylance().file.LanceFileReader(str(tmp_path / "up/load.lance"))

    assert theirs.read_all().to_table().to_pydict() == {"q": [1, 2]}
    session.delete_file("up/load.lance")
    assert not session.contains("up/load.lance")


# --- blobs ----------------------------------------------------------------------------------------

BLOB_READS: dict[str, Callable[[Any], Any]] = {
    "read": lambda file: (file.read(5), file.tell(), file.read(), file.read(1)),
    "read1": lambda file: (file.read1(4), file.read1(-1)[:3], file.tell()),
    "readinto": lambda file: (file.readinto(into := bytearray(7)), bytes(into), file.tell()),
    "seek": lambda file: (file.seek(-4, io.SEEK_END), file.read(10)),
    "seek with names": lambda file: (file.seek(offset=2, whence=0), file.read(size=3)),
    "past the end": lambda file: (file.seek(10**6), file.read(3)),
    "range": lambda file: (file.read_range(3, 4), file.tell()),
    "ranges": lambda file: file.read_ranges([(0, 2), (9, 1)]),
    "size": lambda file: (file.size(), file.readable(), file.seekable(), file.closed),
    "back and forth": lambda file: [
        (file.seek(place), file.read(count))
        for place, count in ((0, 3), (500, 9), (2, 700), (990, 40), (1, 1), (0, 1000))
    ],
    "closed": lambda file: (file.close(), file.read(1)),
    "read-only buffer": lambda file: file.readinto(b"abc"),
    "as text": lambda file: io.TextIOWrapper(file, "latin-1").read(4),
}


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("api") / "blobs.lance")
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payload = bytes(number % 251 for number in range(1000))
    rows = pa.table([pa.array([payload, b"", None])], schema=pa.schema([field]))
    require_pylance().write_dataset(rows, place, data_storage_version="2.1")
    return place


@pytest.mark.parametrize("buffer_size", [0, 1, 16, 524288])
@pytest.mark.parametrize("name", BLOB_READS)
def test_a_blob_file_reads_as_in_pylance(name: str, buffer_size: int, blobs: str) -> None:
    read = BLOB_READS[name]

    def call(lib: Any) -> Any:
        files = lib.dataset(blobs).take_blobs("blob", indices=[0], buffer_size=buffer_size)
        assert isinstance(files[0], io.BufferedIOBase)
        return read(files[0])

    agree(lambda: call(require_pylance()), lambda: call(lance_nb))


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "1"])
def test_a_buffer_size_is_a_number_of_bytes(wrong: Any, blobs: str) -> None:
    agree(*(
        lambda lib=lib: lib.dataset(blobs).take_blobs("blob", indices=[0], buffer_size=wrong)
        for lib in (require_pylance(), lance_nb)
    ))  # fmt: skip


# --- indices --------------------------------------------------------------------------------------


def test_an_index_is_described_as_in_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    place = str(tmp_path / "indexed.lance")
    lance.write_dataset(ROWS, place).create_scalar_index("a", "BTREE")
    (theirs,), (ours,) = (lib.dataset(place).describe_indices() for lib in (lance, lance_nb))

    for name in ("name", "index_type", "type_url", "fields", "field_names", "num_rows_indexed",
                 "total_size_bytes"):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    segments = zip(ours.segments, theirs.segments, strict=True)
    for mine, other in segments:
        for name in ("uuid", "fragment_ids", "index_version", "created_at", "size_bytes", "base_id",
                     "dataset_version_at_last_update", "covering_fields"):  # fmt: skip
            assert getattr(mine, name) == getattr(other, name), name
