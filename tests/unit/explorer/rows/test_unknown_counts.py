"""Manifests of releases of 2023 have no row counts, or wrong ones: nothing shows these as 0."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.history.value_facts import FACTS
from lance_nb.explorer.history.versions import dataset_card, timeline, version_detail
from lance_nb.explorer.storage.fragments import fragment_detail, fragment_map, most_deleted
from lance_nb.explorer.storage.storage_report import storage_health
from lance_nb.magic.verbs.browse import dataset_summary
from lance_nb.table.diff.version_diff import DiffCounts
from tests.support.old_releases import PATHS


@pytest.fixture(params=["pylance_0_7_5/deletions", "pylance_0_8_0/wrong_counts"])
def old(request: pytest.FixtureRequest) -> LanceDataset:
    """Return 100 rows with 10 deleted and 16 rows with 12 deleted, and perhaps 2 rows more."""
    return lance_nb.dataset(str(PATHS[request.param]))


def test_counts_of_a_version_are_unknown_in_lists_of_versions(old: LanceDataset) -> None:
    for info in old.history()[-3:]:
        assert (info.num_rows, info.num_deleted_rows) == (None, None)
    at = old.checkout_version(3)
    entries = {entry.label: entry.value for entry in version_detail(at).counts}
    assert (entries["rows"], entries["deleted rows"]) == ("not recorded", "not recorded")
    assert old.inspect.versions()["num_rows"][0].as_py() is None
    facts = dict(FACTS["version"](old.history()[-1]).rows)
    assert (facts["rows"], facts["deleted rows"]) == ("not recorded", "not recorded")
    bar = timeline(at).lanes[0].details[2]
    assert (bar.rows, bar.added, bar.removed) == (None, None, None)


def test_views_of_one_version_count_in_the_files(old: LanceDataset) -> None:
    more = old.count_rows() - 94
    stats = old.stats()
    assert (stats.num_rows, stats.num_deleted_rows) == (94 + more, 22)
    totals = fragment_map(old).totals
    assert (totals["rows"], totals["deleted"]) == (116 + more, 22)
    assert [(one.id, one.rows, one.deleted) for one in most_deleted(old)[:2]] == [
        (1, 16, 12),
        (0, 100, 10),
    ]
    assert (fragment_detail(old, 1).rows, fragment_detail(old, 1).deleted) == (16, 12)
    assert any("deleted" in repr(advice) for advice in storage_health(old))
    counts: DiffCounts = old.diff(1, 3).counts
    assert (counts.rows_before, counts.rows_after) == (100, 94)
    fragments = old.inspect.fragments()
    assert fragments["num_rows"].to_pylist()[:2] == [None, None]
    assert fragments["num_deleted_rows"].to_pylist()[:2] == [None, None]


def test_sizes_that_are_not_recorded_are_unknown(old: LanceDataset) -> None:
    assert old.stats().size_bytes is None
    assert {one.size_bytes for one in old.history()} == {None}
    assert set(old.inspect.fragments()["size_bytes"].to_pylist()) == {None}
    assert {fact.key: fact.value for fact in dataset_card(old).facts}["size"] == "unknown"
    assert fragment_map(old).totals["bytes"] is None
    assert fragment_detail(old, 1).bytes is None
    assert "data files of unknown size" in repr(dataset_summary(old))


def test_sizes_that_are_recorded_are_shown(tmp_path: Path) -> None:
    new = lance_nb.write_dataset(pa.table({"a": [1]}), tmp_path / "d")
    size = new.stats().size_bytes
    assert size
    assert [one.size_bytes for one in new.history()] == [size]
    assert fragment_map(new).totals["bytes"] == fragment_detail(new, 0).bytes == size
    new.delete("true")
    empty = lance_nb.dataset(new.uri)
    assert (empty.stats().size_bytes, empty.history()[0].size_bytes) == (0, 0)
