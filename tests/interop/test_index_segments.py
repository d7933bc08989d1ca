"""Segments of indices: extended, merged, built alone; pylance reads what we commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import IndexNotFoundError, InvalidInputError, NotSupportedError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
KINDS = {
    "BTREE": ("number", "number < 20 OR number = 150"),
    "BITMAP": ("word", "word = 'w3'"),
    "LABEL_LIST": ("labels", "array_has(labels, 2)"),
    "NGRAM": ("text", "contains(text, 'ext 12')"),
    "ZONEMAP": ("number", "number < 20 OR number = 150"),
    "BLOOMFILTER": ("number", "number = 150"),
}


def table(first: int = 0, count: int = 100) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "number": pa.array([None if at % 41 == 5 else at for at in ids], pa.int64()),
            "word": [f"w{at % 5}" for at in ids],
            "labels": [None if at % 9 == 1 else [at % 5, at % 3] for at in ids],
            "text": [f"text {at}" for at in ids],
            "key": pa.array(ids),
        }
    )


def covered(ds: Any, name: str = "t") -> list[list[int]]:
    return [
        sorted(segment.fragment_ids)
        for index in ds.describe_indices()
        if index.name == name
        for segment in index.segments
    ]


def answers_are_right(uri: str, question: str) -> None:
    theirs, ours = require_pylance().dataset(uri), lance_nb.dataset(uri)
    wanted = ours.scanner(filter=question, use_scalar_index=False).to_table()
    assert wanted.num_rows
    assert "index: 't'" in ours.scanner(filter=question).explain_plan()
    assert ours.to_table(filter=question).equals(wanted)
    found = theirs.to_table(filter=question)
    assert sorted(found["key"].to_pylist()) == sorted(wanted["key"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"num_indices_to_merge": 0}, {"num_indices_to_merge": 2}, {"retrain": True}]
)
def test_indices_are_extended_as_by_pylance(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    lance = require_pylance()
    column, question = KINDS[kind]
    segments = []
    for engine in (lance, lance_nb):
        uri = str(tmp_path / engine.__name__)
        made = lance.write_dataset(
            table(), uri, max_rows_per_file=60, enable_stable_row_ids=kind in ("BTREE", "BITMAP")
        )
        made.create_scalar_index(column, kind, name="t")
        made.insert(table(100, 30))
        made.delete("key % 10 = 7")
        ds = engine.dataset(uri)
        mine = [covered(ds)]
        ds.optimize.optimize_indices(**options)
        mine.append(covered(ds))
        ds.insert(table(130, 30))
        ds.optimize.optimize_indices(num_indices_to_merge=0)
        mine.append(covered(ds))
        ds.insert(table(160, 30))
        ds.optimize.optimize_indices(**options)
        segments.append([*mine, covered(ds)])
    if "retrain" in options:  # pylance trains the last segment alone
        assert segments[1][-1] == [[0, 1, 2, 3, 4]]
    elif options or kind not in ("BTREE", "BITMAP"):  # there by default pylance merges all
        assert segments[0] == segments[1]
    answers_are_right(str(tmp_path / "lance_nb"), question)
    newest = lance_nb.dataset(str(tmp_path / "lance_nb"))
    assert newest.verify().verdict == "whole"
    version = newest.version
    newest.optimize.optimize_indices()
    assert newest.version == version
    newest.update(
        {"number": "number", "word": "word", "labels": "labels", "text": "text"}, "key < 9"
    )
    newest.optimize.compact_files()
    newest.optimize.optimize_indices(index_names=["t"])
    assert newest.index_statistics("t")["num_unindexed_rows"] == 0
    answers_are_right(str(tmp_path / "lance_nb"), question)


@pytest.mark.parametrize("kind", KINDS)
def test_segments_are_built_alone_and_committed_together(tmp_path: Path, kind: str) -> None:
    lance = require_pylance()
    column, question = KINDS[kind]
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table(0, 200), uri, max_rows_per_file=50)
    ours, theirs = lance_nb.dataset(uri), lance.dataset(uri)
    parts = [ours.create_index_uncommitted(column, kind, "t", fragment_ids=[at]) for at in range(3)]
    assert not ours.has_index
    merged = ours.merge_existing_index_segments(parts[:2])
    assert merged.fragment_ids == {0, 1}
    foreign = theirs.create_index_uncommitted(column, kind, name="t", fragment_ids=[3])
    last = lance_nb.Index(
        foreign.uuid, "t", foreign.fields, 1, foreign.fragment_ids, foreign.index_version,
        files=[lance_nb.IndexFile(one.path, one.size_bytes) for one in foreign.files],
        index_details=parts[0].index_details,
    )  # fmt: skip
    ours.commit_existing_index_segments("t", column, [merged, parts[2]])
    assert covered(ours) == [[0, 1], [2]]
    ours.commit_existing_index_segments("t", column, [last])
    assert covered(ours) == [[0, 1], [2], [3]]
    answers_are_right(uri, question)
    again = ours.create_index_uncommitted(column, kind, "t", fragment_ids=[0, 1, 2, 3])
    ours.commit_existing_index_segments("t", column, [again])
    assert covered(ours) == [[0, 1, 2, 3]]
    answers_are_right(uri, question)


def test_an_index_without_training_covers_nothing_until_it_is_extended(tmp_path: Path) -> None:
    lance = require_pylance()
    for kind, (column, question) in KINDS.items():
        uri = str(tmp_path / kind)
        ours = lance_nb.write_dataset(table(0, 160), uri, max_rows_per_file=90)
        uuid = "d02910da-c60f-48da-9df6-846239884c05"
        ours.create_scalar_index(column, kind, "t", train=False, index_uuid=uuid)
        assert ours.describe_indices()[0].segments[0].uuid == uuid
        assert covered(ours) == [[]]
        rows = ours.count_rows(question)
        assert lance.dataset(uri).count_rows(filter=question) == rows > 0
        lance.dataset(uri).optimize.optimize_indices()
        answers_are_right(uri, question)


def refused(call: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_segments_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_nb.write_dataset(table(0, 200), uri, max_rows_per_file=50)

    def build(column: str, kind: str, *fragments: int) -> lance_nb.Index:
        return ds.create_index_uncommitted(column, kind, "t", fragment_ids=fragments)

    commit = ds.commit_existing_index_segments
    first, both = build("number", "BTREE", 0), build("number", "BTREE", 0, 1)
    refused(lambda: commit("t", "number", []), InvalidInputError, "no segments")
    refused(lambda: commit("t", "word", [first]), InvalidInputError, "not on column 'word'")
    refused(lambda: commit("t", "number", [first, both]), InvalidInputError, "by two of the")
    other = build("number", "BITMAP", 1)
    refused(lambda: commit("t", "number", [first, other]), InvalidInputError, "is of type Bitmap")
    refused(lambda: build("number", "BTREE", 9), InvalidInputError, "fragment 9 does not exist")
    refused(lambda: ds.merge_existing_index_segments([]), InvalidInputError, "no segments")
    refused(lambda: ds.merge_existing_index_segments([first, both]), InvalidInputError, "by two of")
    commit("t", "number", [both])
    overlapping = ds.create_index_uncommitted("number", "BTREE", "t", fragment_ids=[1, 2])
    refused(lambda: commit("t", "number", [overlapping]), InvalidInputError, "covered by segment")
    refused(lambda: commit("t", "number", [other]), InvalidInputError, "of type BTree")
    lost = build("number", "BTREE", 3)
    (tmp_path / "t.lance" / "_indices" / lost.uuid / "page_data.lance").unlink()
    refused(lambda: commit("t", "number", [lost]), InvalidInputError, "has no file page_data")
    refused(
        lambda: ds.create_scalar_index("number", fragment_ids=[1]),
        InvalidInputError,
        "create_index_uncommitted",
    )
    refused(lambda: ds.merge_index_metadata("x", "BTREE"), NotSupportedError, "merge_existing")
    refused(lambda: ds.optimize.optimize_indices(index_names=["none"]), IndexNotFoundError, "none")
    refused(lambda: ds.optimize.optimize_indices(num_indices_to_merge=-1), InvalidInputError, "-1")
    refused(lambda: ds.prewarm_index("none"), IndexNotFoundError, "none")
    refused(lambda: ds.prewarm_index("t", index_segments=["x"]), InvalidInputError, "segment x")
    assert covered(ds) == [[0, 1]]


def test_a_cancelled_extension_leaves_no_file(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(table(), tmp_path / "t.lance", max_rows_per_file=60)
    ds.create_scalar_index("number", "BTREE")
    ds.create_scalar_index("word", "BITMAP")
    ds.insert(table(100, 40))
    before = sorted((tmp_path / "t.lance" / "_indices").rglob("*.lance"))
    events: list[lance_nb.IndexProgress] = []

    def stop(event: lance_nb.IndexProgress) -> None:
        events.append(event)
        if [one.event for one in events].count("start") == 3:  # of the second index
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ds.optimize.optimize_indices(progress_callback=stop)
    assert sorted((tmp_path / "t.lance" / "_indices").rglob("*.lance")) == before


def test_a_warm_index_is_searched_without_opening_files(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_nb.write_dataset(table(0, 160), uri).create_scalar_index("number", "BTREE", "t")
    ds = lance_nb.dataset(uri)
    ds.prewarm_index("t")
    (tmp_path / "t.lance" / "_indices").rename(tmp_path / "gone")
    assert "index: 't'" in ds.scanner(filter="number = 7").explain_plan()
