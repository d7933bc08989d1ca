from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.explorer.history import versions
from lance_nb.explorer.history.versions import (
    MAX_FACTS,
    dataset_card,
    runs_of,
    timeline,
    version_bars,
    version_detail,
)
from tests.golden.copies import copy_to_folder
from tests.support.fake_dataset import (
    FakeDataset,
    FakeTransaction,
    FakeVersion,
    many_versions,
    rows,
    small_dataset,
)


def test_versions_of_all_branches_stand_in_lanes_with_their_fork() -> None:
    model = timeline(small_dataset())
    assert [lane.branch for lane in model.lanes] == [None, "dev"]
    assert [lane.runs for lane in model.lanes] == [((1, 4),), ((2, 2),)]
    assert model.lanes[1].fork == (None, 2)
    assert [(tag.name, tag.branch, tag.version) for tag in model.tags] == [("v1", None, 2)]


def test_rows_changed_are_computed_from_the_counts() -> None:
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
    assert (bar.added, bar.removed, bar.orphaned) == (None, None, True)


def test_a_version_is_compared_with_its_parent_only() -> None:
    """Version 5 once claimed the rows of versions 2 to 4, which had been cleaned up."""
    lane = {1: FakeVersion(1, rows(10)), 5: FakeVersion(5, rows(40)), 6: FakeVersion(6, rows(41))}
    bars = version_bars(FakeDataset({None: lane}), [1, 5, 6], [1, 5, 6])
    found = [(bar.added, bar.removed, bar.orphaned) for bar in bars]
    assert found == [(10, 0, False), (None, None, True), (1, 0, False)]


def test_a_version_that_changes_no_rows_needs_no_parent() -> None:
    dataset = FakeDataset({None: {7: FakeVersion(7, rows(10), "Rewrite")}})
    (bar,) = version_bars(dataset, [7], [7])
    assert (bar.added, bar.removed, bar.orphaned) == (0, 0, False)


def test_ten_thousand_versions_cost_one_window_of_manifests() -> None:
    dataset = many_versions(10_000)
    start = time.process_time()
    model = timeline(dataset)
    assert time.process_time() - start < 1.5  # under 0.3 on a quiet machine
    assert len(set(dataset.reads)) <= versions.FIRST_DETAILS + 1
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
    assert len(runs) == versions.MAX_RUNS
    assert older == len(scattered) - versions.MAX_RUNS


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
    assert [bar.operation for bar in bars].index(versions.DAMAGED) == 1
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
    assert len(model.lanes) == versions.MAX_LANES
    assert model.lanes[-1].branch == "b299"
    assert model.hidden_branches == 301 - versions.MAX_LANES


def detail_of(version: FakeVersion) -> dict[str, object]:
    shown = version_detail(FakeDataset({None: {version.version: version}})).to_json()
    json.dumps(shown)
    return shown


def test_a_version_tells_its_operation_counts_schema_and_transaction() -> None:
    detail = version_detail(small_dataset().checkout_version(2))
    assert (detail.label, detail.operation, detail.tags) == ("main:2", "Append", ("v1",))
    assert detail.description == "appends 2 rows in 1 fragment"
    assert {entry.label: entry.value for entry in detail.counts}["rows"] == "30"
    assert [line.name for line in detail.schema.lines] == ["id", "text"]
    assert [(entry.label, entry.value) for entry in detail.transaction] == [
        ("read version", "1"),
        ("transaction", "7f0c"),
        ("fragments[0].id", "1"),
        ("fragments[0].rows", "2"),
    ]


def test_a_version_without_a_transaction_says_so() -> None:
    detail = detail_of(FakeVersion(1, rows(1), operation=None))
    assert detail["operation"] == "operation not recorded"
    assert detail["transaction"] == []
    assert detail["properties"] == []


def test_a_damaged_transaction_leaves_the_rest_readable() -> None:
    class Damaged(FakeDataset):
        def transaction(self, version: int) -> FakeTransaction | None:
            raise CorruptFileError("_transactions/1.txn", 8, "a message", "nothing")

    detail = version_detail(Damaged({None: {1: FakeVersion(1, rows(3))}}))
    assert "cannot be read" in detail.description
    assert detail.counts[0].value == "3"


def test_long_lists_and_deep_values_are_bounded() -> None:
    deep: dict[str, object] = {}
    for _ in range(50):
        deep = {"in": deep}
    details = {"ids": list(range(10_000)), "deep": deep, "nothing": [], "none": None}
    details |= {f"k{at}": "v" * 10_000 for at in range(500)}
    shown = detail_of(FakeVersion(1, rows(1), transaction=FakeTransaction(details=details)))
    assert isinstance(shown["transaction"], list)
    assert len(shown["transaction"]) <= MAX_FACTS + 2
    assert len(json.dumps(shown)) < 60_000


def test_properties_are_shown_with_the_message() -> None:
    version = replace(FakeVersion(1, rows(1)), message="first", properties={"who": "me"})
    shown = detail_of(version)
    assert shown["message"] == "first"
    assert shown["properties"] == [{"label": "who", "value": "me"}]


def test_a_long_message_is_whole() -> None:
    shown = detail_of(replace(FakeVersion(1, rows(1)), message="word " * 3000 + "end"))
    assert shown["message"].endswith("word end")


def test_the_card_says_what_is_looked_at_first() -> None:
    card = dataset_card(small_dataset())
    assert (card.name, card.label, card.latest, card.tags) == ("fake.lance", "main:4", 4, ())
    assert {fact.key: fact.value for fact in card.facts} == {
        "rows": "25",
        "columns": "2",
        "size": "3.4 MB",
        "fragments": "1",
        "deleted": "26.5 %",
        "format": "2.2",
    }


def test_a_branch_and_an_older_version_are_named() -> None:
    dev = dataset_card(small_dataset().checkout_version(("dev", 2)))
    assert (dev.label, dev.latest) == ("dev:2", 3)
    assert dataset_card(small_dataset().checkout_version(2)).tags == ("v1",)


def test_an_unknown_size_is_said_to_be_unknown() -> None:
    version = FakeVersion(1, rows(0), size_bytes=None)
    facts = dataset_card(FakeDataset({None: {1: version}})).to_json()["facts"]
    assert [fact["value"] for fact in facts][:4] == ["0", "2", "unknown", "1"]
    json.dumps(facts)


def test_bars_of_merges_say_where_their_changes_came_from() -> None:
    dataset = lance_nb.write_dataset(rows(5), "memory://merge-marks")
    dev = dataset.create_branch("dev")
    dev.insert(rows(2))
    dataset.branches.merge("dev")  # 2, nothing happened on main
    dataset.checkout_latest().delete("id = 0")
    dev.insert(rows(1))
    dataset.branches.merge("dev")
    main = dataset.checkout_latest()
    main.revert(3)
    dev.cherry_pick((None, 3), on_conflict="theirs")

    def marks() -> dict[str, str]:
        lanes = timeline(lance_nb.dataset(main.uri)).lanes
        bars = [(lane.branch, bar) for lane in lanes for bar in lane.details]
        return {f"{branch}:{bar.version}": bar.merge.words for branch, bar in bars if bar.merge}

    assert marks() == {
        "None:2": "merges dev:2 (fast-forward)",
        "None:4": "merges dev:3",
        "None:5": "reverts main:3",
        "dev:4": "applies the change of main:3",
    }
    for tag in main.tags.names():
        main.tags.delete(tag)
    main.branches.delete("dev", force=True)
    main.create_branch("dev", 1)  # of the same name, and none of those merges was of it
    assert marks()["None:4"] == "merges dev:3, which was deleted"
    assert marks()["None:5"] == "reverts main:3"
