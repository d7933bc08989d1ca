from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.explorer.models import timeline as timelines
from lance_nb.explorer.models.timeline import runs_of, timeline, version_bars
from tests.golden.copies import copy_to_folder
from tests.unit.explorer.fakes import FakeDataset, FakeVersion, many_versions, rows, small_dataset


def test_versions_of_all_branches_stand_in_lanes_with_their_fork() -> None:
    model = timeline(small_dataset())
    assert [lane.branch for lane in model.lanes] == [None, "dev"]
    assert [lane.runs for lane in model.lanes] == [((1, 4),), ((2, 2),)]
    assert model.lanes[1].fork == (None, 2)
    assert [(tag.name, tag.branch, tag.version) for tag in model.tags] == [("v1", None, 2)]


def test_rows_changed_are_told_from_the_counts() -> None:
    bars = {bar.version: bar for bar in timeline(small_dataset()).lanes[0].details}
    assert (bars[1].added, bars[1].removed) == (10, 0)
    assert (bars[2].added, bars[2].removed) == (20, 0)
    assert (bars[3].added, bars[3].removed) == (0, 5)
    assert (bars[4].added, bars[4].removed) == (4, 4)
    assert bars[3].message == "drop five"


@pytest.mark.parametrize(
    ("operation", "before", "after", "changed"),
    [
        ("Rewrite", FakeVersion(1, rows(10), num_deleted_rows=5), rows(10), (0, 0)),
        ("Overwrite", FakeVersion(1, rows(10)), rows(3), (3, 10)),
        ("Delete", FakeVersion(1, rows(10)), rows(4), (0, 6)),
    ],
)
def test_rows_changed_follow_the_operation(
    operation: str, before: FakeVersion, after: object, changed: tuple[int, int]
) -> None:
    dataset = FakeDataset({None: {1: before, 2: FakeVersion(2, after, operation)}})
    (bar,) = version_bars(dataset, [2], [1, 2])
    assert (bar.added, bar.removed) == changed


def test_change_is_unknown_when_the_version_before_is_gone() -> None:
    dataset = FakeDataset({None: {7: FakeVersion(7, rows(10))}})
    (bar,) = version_bars(dataset, [7], [7])
    assert (bar.added, bar.removed) == (None, None)


def test_ten_thousand_versions_cost_one_window_of_manifests() -> None:
    dataset = many_versions(10_000)
    start = time.process_time()
    model = timeline(dataset)
    assert time.process_time() - start < 1.5  # under 0.3 on a quiet machine
    assert len(set(dataset.reads)) <= timelines.FIRST_DETAILS + 1
    assert model.lanes[0].runs == ((1, 10_000),)
    assert len(json.dumps(model.to_json())) < 20_000


def test_the_window_stands_around_the_version_shown() -> None:
    dataset = many_versions(1000).checkout_version((None, 500))
    versions = [bar.version for bar in timeline(dataset).lanes[0].details]
    assert min(versions) < 500 < max(versions)


def test_numbers_become_runs_and_the_oldest_beyond_the_limit_are_counted() -> None:
    assert runs_of([1, 2, 3, 7, 9, 10]) == (((1, 3), (7, 1), (9, 2)), 0)
    assert runs_of([]) == ((), 0)
    scattered = list(range(1, 10_000, 2))
    runs, older = runs_of(scattered)
    assert len(runs) == timelines.MAX_RUNS
    assert older == len(scattered) - timelines.MAX_RUNS


def test_asking_for_versions_that_are_not_there_gives_the_others() -> None:
    dataset = small_dataset()
    bars = version_bars(dataset, [99, 2, 0, 4], dataset.version_numbers())
    assert [bar.version for bar in bars] == [2, 4]


def test_one_damaged_manifest_is_shown_as_such_and_the_others_as_they_are() -> None:
    dataset = small_dataset()
    whole = FakeDataset.version_info

    class Damaged(FakeDataset):
        def version_info(self, version: int, *, with_tags: bool = True) -> FakeVersion:
            if version == 2:
                raise CorruptFileError("_versions/2.manifest", 0, "a footer", "nothing")
            return whole(self, version, with_tags=with_tags)

    dataset.__class__ = Damaged
    bars = version_bars(dataset, [1, 2, 3, 4], [1, 2, 3, 4])
    assert [bar.version for bar in bars] == [1, 2, 3, 4]
    assert [bar.operation for bar in bars].index(timelines.DAMAGED) == 1
    assert "2.manifest" in bars[1].message
    assert bars[1].added is bars[1].time_ms is None


def test_a_damaged_tag_and_a_damaged_manifest_on_disk_leave_the_rest_of_the_view(
    tmp_path: Path,
) -> None:
    path = copy_to_folder("history", tmp_path)
    (path / "_refs" / "tags" / "first.json").write_bytes(b"{")
    dataset = lance_nb.dataset(path)
    name = f"{(1 << 64) - 1 - 4}.manifest"
    (path / "_versions" / name).write_bytes(b"not a manifest")
    model = timeline(dataset)

    assert [tag.name for tag in model.tags] == ["on-side"]
    damaged = [bar.version for bar in model.lanes[0].details if bar.operation == "Damaged"]
    assert damaged == [4]
    assert len(model.lanes[0].details) == len(dataset.version_numbers())
    assert dataset.version_info(3).num_rows
    with pytest.raises(CorruptFileError):
        dataset.versions()
    assert json.dumps(model.to_json())


def test_more_branches_than_lanes_are_counted_and_the_one_in_view_is_shown() -> None:
    lanes = {None: {1: FakeVersion(1, rows(1))}}
    fork = {"parent_branch": None, "parent_version": 1}
    names = [f"b{at:03}" for at in range(300)]
    lanes |= {name: {1: FakeVersion(1, rows(1))} for name in names}
    dataset = FakeDataset(lanes, branch="b299", branches=dict.fromkeys(names, fork))
    model = timeline(dataset)
    assert len(model.lanes) == timelines.MAX_LANES
    assert model.lanes[-1].branch == "b299"
    assert model.hidden_branches == 301 - timelines.MAX_LANES
