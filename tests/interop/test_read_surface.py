"""The read side of the façade is pylance's: names of arguments, values, errors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from lance_nb.dataset.file_reader import LanceFileReader
from lance_nb.dataset.scanner_builder import ScannerBuilder
from lance_nb.errors import LanceError
from tests.support.reading import check
from tests.support.requirements import require_package, require_pylance

pytestmark = pytest.mark.interop

# Arguments of pylance's that have no meaning here, by function; the docstrings say so.
WITHOUT = {
    "LanceDataset.join": {"right_keys", "join_type", "left_suffix", "right_suffix",
                          "coalesce_keys", "use_threads"},
    "LanceDataset.join_asof": {"tolerance", "right_on", "right_by"},
}  # fmt: skip
READING = {
    "LanceDataset": (
        "count_rows", "scanner", "to_table", "to_batches", "head", "slice", "take",
        "take_blobs", "read_blobs", "read_blob_ranges", "sample", "get_fragments", "get_fragment",
        "fragment_ids", "versions", "version_refs", "get_version", "checkout_version",
        "checkout_latest", "read_transaction", "get_transactions", "config", "list_indices",
        "describe_indices", "index_statistics", "all_files", "tracked_files", "base_paths", "sql",
        "to_pandas", "join", "join_asof",
    ),
    "LanceFragment": ("count_rows", "take", "head", "to_table", "to_batches", "to_pandas",
                      "scanner", "data_files", "deletion_file"),
    "LanceScanner": ("to_table", "to_batches", "to_reader", "to_pandas", "count_rows", "head",
                     "take", "scan_batches", "explain_plan", "analyze_plan"),
}  # fmt: skip
PROPERTIES = {
    "LanceDataset": ("uri", "version", "latest_version", "schema", "lance_schema", "tags",
                     "branches", "metadata", "schema_metadata", "data_storage_version", "stats",
                     "has_stable_row_ids", "max_field_id", "has_index", "partition_expression"),
    "LanceFragment": ("fragment_id", "metadata", "schema", "physical_rows", "num_deletions",
                      "physical_schema", "partition_expression"),
    "LanceScanner": ("projected_schema", "dataset_schema"),
}  # fmt: skip


@pytest.mark.parametrize(
    "place", [f"{owner}.{name}" for owner in READING for name in READING[owner]]
)
def test_every_argument_of_pylance_is_taken(place: str) -> None:
    lance = require_pylance()
    owner, _, name = place.partition(".")
    theirs = inspect.signature(getattr(getattr(lance, owner), name)).parameters
    ours = inspect.signature(getattr(getattr(lance_nb, owner), name)).parameters
    takes_more = any(one.kind is one.VAR_KEYWORD for one in ours.values())
    missing = {one.name for one in theirs.values() if one.kind is not one.VAR_KEYWORD}
    missing -= set(ours) | WITHOUT.get(place, set())
    assert takes_more or not missing
    mine = [one.name for one in ours.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    other = [one.name for one in theirs.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    shared = [name for name in mine if name in other]
    assert shared == [name for name in other if name in shared]
    assert inspect.getdoc(getattr(getattr(lance_nb, owner), name))


@pytest.mark.parametrize(
    "place", [f"{owner}.{name}" for owner in PROPERTIES for name in PROPERTIES[owner]]
)
def test_every_property_of_pylance_is_there(place: str) -> None:
    lance = require_pylance()
    owner, _, name = place.partition(".")
    assert isinstance(inspect.getattr_static(getattr(lance, owner), name), property)
    assert isinstance(inspect.getattr_static(getattr(lance_nb, owner), name), property)


def test_a_builder_has_every_option_of_pylance() -> None:
    lance = require_pylance()
    theirs = vars(__import__("sys").modules[lance.LanceDataset.__module__])["ScannerBuilder"]
    names = {name for name in dir(theirs) if not name.startswith("_")} - {"minhash_search"}
    assert names <= set(dir(ScannerBuilder(None)))
    assert {name for name in dir(LanceFileReader) if not name.startswith("_")} >= {
        name for name in dir(require_pylance("14.0.2").file.LanceFileReader) if name[0] != "_"
    }


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Any, Any]:
    lance = require_pylance()
    table = pa.table({"a": [3, 1, 2, None], "b": ["x", "y", "z", None]})
    path = str(tmp_path / "d")
    lance.write_dataset(table.replace_schema_metadata({"k": "v"}), path, max_rows_per_file=3)
    lance.dataset(path).insert(table)
    lance.dataset(path).delete("a = 1")
    lance.dataset(path).tags.create("first", 1)
    return lance_nb.dataset(path), lance.dataset(path)


SAME = {
    "fragment_ids": lambda one: list(one.fragment_ids()),
    "version_refs": lambda one: one.version_refs(),
    "get_version": lambda one: one.get_version(),
    "max_field_id": lambda one: one.max_field_id,
    "schema_metadata": lambda one: one.schema_metadata,
    "has_stable_row_ids": lambda one: one.has_stable_row_ids,
    "has_index": lambda one: one.has_index,
    "base_paths": lambda one: one.base_paths(),
    "dataset_stats": lambda one: one.stats.dataset_stats(),
    "small files": lambda one: one.stats.dataset_stats(2),
    "length": len,
    "no fragment": lambda one: one.get_fragment(77),
    "get_fragment": lambda one: one.get_fragment(1).count_rows(),
    "fragment schema": lambda one: one.get_fragments()[0].schema,
    "count by expression": lambda one: one.count_rows(pc.field("a") > 2),
    "tracked": lambda one: sorted(map(str, one.tracked_files().read_all().to_pylist())),
    "tracked from": lambda one: one.tracked_files(min_version=3).read_all().num_rows,
    "tracked schema": lambda one: one.tracked_files().schema,
    "all": lambda one: sorted(
        str(row) for row in one.all_files().read_all().drop(["last_modified"]).to_pylist()
    ),
    "all schema": lambda one: one.all_files().schema,
    "version of a tag": lambda one: one.tags.get_version("first"),
    "tags in order": lambda one: one.tags.list_ordered(),
    "frame": lambda one: one.to_pandas().to_dict("list"),
    "frame of a filter": lambda one: one.to_pandas(filter="a > 2", columns=["b"]).to_dict("list"),
}


@pytest.mark.parametrize("name", SAME)
def test_values_are_equal(pair: Any, name: str) -> None:
    ours, theirs = pair
    assert str(SAME[name](ours)) == str(SAME[name](theirs))


TABLES = {
    "slice": lambda one: one.slice(1, 3),
    "slice of columns": lambda one: one.slice(0, 2, ["b"]),
    "slice past the end": lambda one: one.slice(4, 100),
    "empty slice": lambda one: one.slice(2, 2),
    "fragment head": lambda one: one.get_fragments()[0].head(1),
    "fragment take": lambda one: one.get_fragments()[0].take([0, 1]),
    "scanner head": lambda one: one.scanner(columns=["a"]).head(2),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_equal(pair: Any, name: str) -> None:
    ours, theirs = pair
    check(TABLES[name](ours), TABLES[name](theirs), name)


REFUSED = {
    "slice below": (lambda one: one.slice(-1, 3), ValueError),
    "slice backwards": (lambda one: one.slice(3, 1), ValueError),
    "join": (lambda one: one.join(one, "a"), NotImplementedError),
    "partition": (lambda one: one.partition_expression, NotImplementedError),
    "fragment partition": (
        lambda one: one.get_fragments()[0].partition_expression, NotImplementedError),
    "physical schema": (lambda one: one.get_fragments()[0].physical_schema, NotImplementedError),
    "fragments by filter": (lambda one: one.get_fragments(pc.field("a") > 1), ValueError),
    "index stats": (lambda one: one.stats.index_stats("none"), KeyError),
    "scanner take": (lambda one: one.scanner().take([0]), NotImplementedError),
    "sample": (lambda one: one.sample(99), ValueError),
    "version": (lambda one: one.checkout_version(99), OSError),
    "tag": (lambda one: one.checkout_version("none"), OSError),
    "tag's version": (lambda one: one.tags.get_version("none"), ValueError),
    "transaction": (lambda one: one.read_transaction(99), OSError),
    "column": (lambda one: one.to_table(["none"]), ValueError),
    "batch size": (lambda one: one.to_table(batch_size=0), ValueError),
    "option": (lambda one: one.to_pandas(blob_mode="none"), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_those_of_pylance(pair: Any, name: str) -> None:
    action, kind = REFUSED[name]
    ours, theirs = pair
    with pytest.raises(kind):
        action(theirs)
    with pytest.raises(kind) as caught:
        action(ours)
    assert isinstance(caught.value, LanceError)


@pytest.mark.parametrize("verb", ["sort_by", "filter"])
def test_what_ends_the_process_of_pylance_is_refused_here(pair: Any, verb: str) -> None:
    with pytest.raises(NotImplementedError, match=r"of a scan: ds\.scanner"):
        getattr(pair[0], verb)("a")
    with pytest.raises(NotImplementedError, match="join tables"):
        pair[0].join_asof(pair[0], "a", "b", 1)


def test_checking_out_the_latest_moves_the_object(pair: Any) -> None:
    for one in pair:
        old = one.checkout_version(1)
        assert old.version == 1
        old.checkout_latest()
        assert old.version == 3


STATEMENTS = (
    "SELECT a, b FROM dataset WHERE a > 1 ORDER BY b",
    "SELECT count(*) AS n FROM dataset",
    "SELECT b, sum(a) AS total FROM dataset GROUP BY b ORDER BY b",
    "SELECT * FROM dataset ORDER BY a, b",
    "SELECT x.b FROM dataset x JOIN dataset y ON x.a = y.a ORDER BY 1",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_sql_answers_as_pylance(pair: Any, statement: str) -> None:
    require_package("duckdb")
    ours, theirs = (pa.Table.from_batches(one.sql(statement).build().to_batch_records())
                    for one in pair)  # fmt: skip
    assert ours.to_pylist() == theirs.to_pylist()


def test_sql_sees_row_ids_and_another_name(pair: Any) -> None:
    require_package("duckdb")
    for one in pair:
        builder = one.sql("SELECT * FROM t ORDER BY _rowaddr").table_name("t").with_row_id()
        reader = builder.with_row_addr().batch_size(2).build().to_stream_reader()
        assert reader.schema.names == ["a", "b", "_rowid", "_rowaddr"]
        assert reader.read_all()["_rowaddr"].to_pylist()[0] == 0


def test_wrong_sql_is_refused(pair: Any) -> None:
    require_package("duckdb")
    for statement in ("SELECT nope FROM dataset", "SELEC", "SELECT * FROM nope"):
        with pytest.raises(ValueError, match="SQL"):
            pair[0].sql(statement).build().to_batch_records()


def test_a_builder_makes_the_same_scan(pair: Any) -> None:
    ours, theirs = pair
    other = type(theirs.scanner()).__module__
    theirs_builder = vars(__import__("sys").modules[other])["ScannerBuilder"]
    tables = [
        builder(one).columns(["b"]).filter("a > 1").limit(2).with_row_id().offset(1)
        .batch_size(10).scan_in_order().use_stats().to_scanner().to_table()
        for builder, one in ((ScannerBuilder, ours), (theirs_builder, theirs))
    ]  # fmt: skip
    check(tables[0], tables[1], "built")
    for builder, one in ((ScannerBuilder, ours), (theirs_builder, theirs)):
        with pytest.raises(ValueError, match="Unknown option"):
            builder(one).apply_defaults({"nope": 1})
        assert builder(one).apply_defaults({"limit": 1}).to_scanner().to_table().num_rows == 1


def test_blobs_in_frames(tmp_path: Path) -> None:
    lance = require_pylance()
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([field, pa.field("id", pa.int64())])
    lance.write_dataset(pa.table([[b"abc", None], [1, 2]], schema=schema), tmp_path / "d")
    ours, theirs = lance_nb.dataset(tmp_path / "d"), lance.dataset(tmp_path / "d")
    for mode in ("bytes", "descriptions"):
        frames = [one.to_pandas(blob_mode=mode).to_dict("list") for one in (ours, theirs)]
        assert frames[0] == frames[1]
    for one in (ours, theirs):
        frame = one.to_pandas()
        assert frame["blob"][0].readall() == b"abc"
        assert frame["blob"][1] is None
        assert list(frame.columns) == ["blob", "id"]


def test_opening_refuses_what_it_cannot_honour(pair: Any) -> None:
    for name in ("namespace_client", "table_id", "base_store_params"):
        with pytest.raises(NotImplementedError, match=name):
            lance_nb.dataset(pair[0].uri, **{name: {"a": {"b": "c"}}})
    with pytest.raises(TypeError, match="nope"):
        lance_nb.dataset(pair[0].uri, nope=1)
    with pytest.warns(DeprecationWarning, match="index_cache_size"):
        assert lance_nb.dataset(pair[0].uri, block_size=4096, index_cache_size=9).version == 3
