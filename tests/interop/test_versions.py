"""Versions named in uncommon ways: detached, after a cleanup, by time, of nested branches."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import VersionNotFoundError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


def table(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


@pytest.fixture(params=["v2", "v1"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], tuple[str, Any]]:
    """Write a dataset of some versions, each with one more row, under either kind of names."""

    def versions(count: int) -> tuple[str, Any]:
        lance = require_pylance()
        path = str(tmp_path / "d")
        lance.write_dataset(table(1), path, enable_v2_manifest_paths=request.param == "v2")
        for number in range(2, count + 1):
            lance.dataset(path).insert(table(number))
        return path, lance

    return versions


def values(dataset: Any) -> list[int]:
    return dataset.to_table()["a"].to_pylist()


def test_a_detached_version_is_opened_by_its_number_and_never_listed(tmp_path: Path) -> None:
    lance, path = require_pylance(), str(tmp_path / "d")
    lance.write_dataset(table(1), path).insert(table(2))
    fragments = lance.fragment.write_fragments(table(7), path)
    append = lance.LanceOperation.Append(fragments)
    detached = lance.LanceDataset.commit(path, append, read_version=1, detached=True)
    assert detached.version >> 63

    ours = lance_nb.dataset(path, version=detached.version)
    assert values(ours) == values(detached) == [1, 2, 7]
    assert ours.version == detached.version
    assert ours.latest_version == lance.dataset(path).version == 2
    assert lance_nb.dataset(path).version_numbers() == [1, 2]
    assert [one["version"] for one in ours.versions()] == [1, 2]
    assert values(lance_nb.dataset(path).checkout_version(detached.version)) == [1, 2, 7]
    assert ours.take([2])["a"].to_pylist() == [7]
    assert ours.to_table(filter="a > 2")["a"].to_pylist() == [7]
    with pytest.raises(VersionNotFoundError):
        lance_nb.dataset(path, version=detached.version ^ 1)


def test_versions_of_ours_that_are_detached_are_read_by_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    lance.write_dataset(table(1), tmp_path / "d")
    fragments = lance_nb.write_fragments(table(5), str(tmp_path / "d"))
    append = lance_nb.LanceOperation.Append(fragments)
    made = lance_nb.LanceDataset.commit(tmp_path / "d", append, read_version=1, detached=True)
    assert values(lance.dataset(tmp_path / "d", version=made.version)) == [1, 5]


def test_gaps_after_a_cleanup(write: Any) -> None:
    path, lance = write(9)
    lance.dataset(path).tags.create("kept", 4)
    lance.dataset(path).cleanup_old_versions(
        older_than=timedelta(0), error_if_tagged_old_versions=False
    )
    lance.dataset(path).insert(table(10))
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    assert ours.version_numbers() == [one["version"] for one in theirs.versions()] == [4, 9, 10]
    assert ours.versions() == theirs.versions()
    assert [one.version for one in ours.history()] == [10, 9, 4]
    assert values(ours.checkout_version("kept")) == [1, 2, 3, 4]
    for gone in (1, 5, 8, 11):
        with pytest.raises(VersionNotFoundError):
            lance_nb.dataset(path, version=gone)


def test_the_version_of_a_time(write: Any) -> None:
    path, lance = write(1)
    moments = []
    for number in (2, 3):
        time.sleep(0.02)
        moments.append(datetime.now(UTC))
        time.sleep(0.02)
        lance.dataset(path).insert(table(number))
    for moment, version in zip([*moments, datetime.now(UTC)], (1, 2, 3), strict=True):
        naive = moment.astimezone().replace(tzinfo=None)  # all that pylance takes
        assert lance_nb.dataset(path, asof=moment).version == version
        assert lance_nb.dataset(path, asof=naive).version == version
        assert lance.dataset(path, asof=naive).version == version
    before = naive - timedelta(days=9)
    for open_dataset in (lance.dataset, lance_nb.dataset):
        with pytest.raises(ValueError):
            open_dataset(path, asof=before)


def test_tags_and_versions_of_branches_with_nested_names(write: Any) -> None:
    path, lance = write(3)
    deep = lance.dataset(path).create_branch("team/a/try-1", 2)
    deep.insert(table(70))
    beside = deep.create_branch("team/a.b", ("team/a/try-1", 3))
    beside.insert(table(80))
    deep.tags.create("on-deep", ("team/a/try-1", 3))
    beside.tags.create("on-beside", ("team/a.b", 4))
    lance.dataset(path).tags.create("on-main", 1)
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    assert ours.tags.list() == theirs.tags.list()
    assert ours.branches.list() == theirs.branches.list()
    for ref in (
        "on-deep", "on-beside", "on-main", ("team/a/try-1", None), ("team/a/try-1", 2),
        ("team/a.b", None), (None, 3), ("main", 1),
    ):  # fmt: skip
        mine, other = ours.checkout_version(ref), theirs.checkout_version(ref)
        assert values(mine) == values(other), ref
        assert mine.version == other.version, ref
        assert mine.versions() == other.versions(), ref
        assert lance_nb.dataset(path, version=ref).branch == mine.branch
