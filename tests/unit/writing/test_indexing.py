from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    CommitConflictError,
    IndexNotFoundError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.writing import indexing
from tests.support.versions import index


@pytest.fixture
def indexed(make):
    """Ten rows in five fragments; an index of two segments covers four of them."""
    made = make(max_rows_per_file=2)
    field = made.lance_schema.field("id").id()
    first = index("tree", field, covers=(0, 1, 2))
    second = replace(index("second", field, covers=(3,)), name="tree", created_at_ms=99)
    made._change(CreateIndex((first, second)))
    return made


def names(made):
    return [one.name for one in made.describe_indices()]


def test_an_index_is_dropped_with_all_segments(indexed, uri):
    before = indexed.version
    lance_nb.dataset(uri).insert(indexed.to_table())
    indexed.drop_index("tree")
    assert indexed.version == before + 2
    assert not indexed.has_index
    with pytest.raises(IndexNotFoundError, match="none"):
        indexed.drop_index("tree")
    assert issubclass(IndexNotFoundError, RuntimeError)  # as pylance raises
    assert issubclass(IndexNotFoundError, KeyError)


def test_statistics_say_what_the_manifest_knows(indexed):
    found = indexed.stats.index_stats("tree")
    assert found == indexed.index_statistics("tree")
    parts = found.pop("segments")
    assert found.pop("indices") == parts
    assert [one["index_type"] for one in parts] == ["BTree", "BTree"]
    assert found == {
        "index_type": "BTree", "name": "tree", "num_indices": 2, "num_segments": 2,
        "num_indexed_fragments": 4, "num_indexed_rows": 8,
        "num_unindexed_fragments": 1, "num_unindexed_rows": 2,
        "num_indexed_rows_per_delta": [6, 2], "updated_at_timestamp_ms": 99,
        "not_read": ["min", "max", "num_pages"],
    }  # fmt: skip
    with pytest.raises(KeyError):
        indexed.stats.index_stats("none")


def test_coverage_is_a_row_per_index_and_fragment(indexed):
    table = indexed.index_coverage()
    assert table["fragment_id"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["num_rows"].to_pylist() == [2] * 5
    assert table["is_covered"].to_pylist() == [True, True, True, True, False]
    assert [len(one) for one in table["segments"].to_pylist()] == [1, 1, 1, 1, 0]
    assert indexed.index_coverage("tree").equals(table)
    with pytest.raises(IndexNotFoundError):
        indexed.index_coverage("none")
    indexed.drop_index("tree")
    assert indexed.index_coverage().num_rows == 0


def test_descriptions_have_segments(indexed):
    (described,) = indexed.describe_indices()
    assert [sorted(one.fragment_ids) for one in described.segments] == [[0, 1, 2], [3]]
    assert described.num_segments == 2
    assert described.details == {}


def test_moves_are_remembered_as_long_as_an_index_needs_them(indexed):
    indexed.optimize.compact_files()
    assert names(indexed) == [REUSE_INDEX, "tree"]
    assert indexed.index_statistics(REUSE_INDEX) == {"num_versions": 1}
    assert indexed.optimize.cleanup_frag_reuse_index() == 0
    with pytest.raises(InvalidInputError, match="cleanup_frag_reuse_index"):
        indexed.drop_index(REUSE_INDEX)
    built = index("new", indexed.lance_schema.field("id").id(), covers=(5,))
    indexed._change(CreateIndex((replace(built, dataset_version=indexed.version),)))
    indexed.drop_index("tree")
    assert indexed.optimize.cleanup_frag_reuse_index() == 1
    assert names(indexed) == ["new"]
    assert indexed.optimize.cleanup_frag_reuse_index() == 0


@pytest.mark.filterwarnings("ignore:index .* cannot be used")  # the index has no files
def test_only_what_is_not_needed_is_forgotten(indexed):
    indexed.optimize.compact_files(target_rows_per_fragment=8)
    built = index("new", indexed.lance_schema.field("id").id(), covers=(5,))
    indexed._change(CreateIndex((replace(built, dataset_version=indexed.version),)))
    indexed.drop_index("tree")
    indexed.delete("id < 3")
    indexed.optimize.compact_files()
    assert indexed.index_statistics(REUSE_INDEX) == {"num_versions": 2}
    assert indexed.optimize.cleanup_frag_reuse_index() == 1
    assert indexed.index_statistics(REUSE_INDEX) == {"num_versions": 1}
    assert True in indexed.index_coverage("new")["is_covered"].to_pylist()


def test_the_fragment_reuse_index_alone_can_be_dropped(indexed):
    indexed.optimize.compact_files()
    indexed.drop_index("tree")
    indexed.drop_index(REUSE_INDEX)
    assert names(indexed) == []


def test_what_is_not_offered_says_what_to_do_instead(indexed):
    for refused in (
        lambda: indexed.create_scalar_index("id", "RTREE"),
        lambda: indexed.create_index(["id"], "IVF_RQ", num_partitions=2),
    ):
        with pytest.raises(NotSupportedError, match=r"lance\.dataset\('memory"):
            refused()
    with pytest.raises(IndexNotFoundError):
        indexed.prewarm_index("none")
    with pytest.raises(lance_nb.ColumnNotFoundError):
        indexed.create_scalar_index("none", "BTREE")


KINDS = {
    "BTREE": "id", "BITMAP": "id", "ZONEMAP": "id", "BLOOMFILTER": "id", "NGRAM": "name",
    "LABEL_LIST": "tags",
}  # fmt: skip


@pytest.fixture
def plain(tmp_path):
    rows = 40
    table = pa.table(
        {
            "id": pa.array(range(rows)),
            "name": [f"name {one % 9}" for one in range(rows)],
            "tags": [[one % 3, one % 4] for one in range(rows)],
        }
    )
    return lance_nb.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_error_of_the_callback_ends_the_work_and_leaves_nothing(plain, tmp_path, kind, after):
    def files():
        return sorted(str(one) for one in (tmp_path / "t.lance").rglob("*") if one.is_file())

    before = files()
    events = []

    def stop(event):
        events.append(event)
        if len(events) > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plain.create_scalar_index(KINDS[kind], kind, progress_callback=stop)
    assert files() == before
    assert not plain.has_index
    events.clear()
    plain.create_scalar_index(KINDS[kind], kind, progress_callback=events.append)
    assert events[0] == lance_nb.IndexProgress("start", "load_data", 0, 40, "rows")
    (loaded,) = [one for one in events if (one.event, one.stage) == ("complete", "load_data")]
    assert loaded.fraction == 1


def test_a_refused_commit_leaves_no_files_of_the_index(plain, tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise CommitConflictError("somebody dropped the column")

    monkeypatch.setattr(indexing, "commit_operation", refuse)
    with pytest.raises(CommitConflictError):
        plain.create_scalar_index("id", "BITMAP")
    assert not [one for one in (tmp_path / "t.lance" / "_indices").rglob("*") if one.is_file()]


def test_a_parameter_without_meaning_is_refused(plain):
    for kind, column in KINDS.items():
        with pytest.raises(InvalidInputError, match="parameter"):
            plain.create_scalar_index(column, kind, rows=5)
    with pytest.raises(InvalidInputError, match="rows_per_zone is a number from 1"):
        plain.create_scalar_index("id", "ZONEMAP", rows_per_zone=0)
