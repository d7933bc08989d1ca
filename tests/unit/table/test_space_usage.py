"""Space: every byte once, exact tables, and simulations that come true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow.compute as pc
import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.errors import RefNotFoundError
from lance_nb.table import merge_bases, retention
from lance_nb.table.retention_simulation import RetentionRule


@pytest.fixture
def grown(make: Callable[..., LanceDataset], rows: Any) -> LanceDataset:
    """Return main with four versions, two tags, a branch with a branch, and an orphan."""
    found = make()
    for _ in range(3):
        found.insert(rows, mode="overwrite")
    found.tags.create("first", 1)
    found.tags.create("second", 2)
    branch = found.create_branch("dev", 2)
    branch.insert(rows)
    branch.create_branch("deep").insert(rows, mode="overwrite")
    found.opened[0].root.write("data/orphan.lance", b"orphan")
    found.opened[0].root.write("notes.txt", b"whose?")
    return found


def test_every_byte_is_in_exactly_one_state(grown: LanceDataset, files: Any):
    found = grown.space()
    there = files()
    sizes = {one["path"]: one["size_bytes"] for one in found.files.to_pylist()}
    assert sizes == {path: len(data) for path, data in there.items()}
    parts = (found.current_bytes, found.old_bytes, found.orphan_bytes, found.other_bytes)
    assert found.total_bytes == sum(map(len, there.values()))
    assert sum(parts) + found.bookkeeping_bytes == found.total_bytes
    assert (found.orphan_bytes, found.other_bytes) == (6, 6)
    assert pc.sum(found.kinds["size_bytes"]).as_py() == found.total_bytes
    assert pc.sum(found.kinds["orphan_bytes"]).as_py() == 6


def test_versions_know_what_is_theirs_alone(grown: LanceDataset, files: Any):
    rows = {(one["branch"], one["version"]): one for one in grown.space().versions.to_pylist()}
    assert rows[None, 1]["tags"] == ["first"]
    assert rows[None, 1]["exclusive_bytes"] == rows[None, 1]["referenced_bytes"]
    shared = rows[None, 2]  # the branches read its data file too
    assert shared["manifest_bytes"] < shared["exclusive_bytes"] < shared["referenced_bytes"]
    assert set(rows) == {(None, 1), (None, 2), (None, 3), (None, 4), ("dev", 2), ("dev", 3),
                         ("deep", 3), ("deep", 4)}  # fmt: skip


def test_refs_know_what_would_go_with_them(grown: LanceDataset, files: Any):
    rows = {one["name"]: one for one in grown.space().refs.to_pylist()}
    data = [name for name in files() if name.startswith("data/") and "orphan" not in name]
    assert rows["first"]["exclusive_bytes"] > len(files()[data[0]]) // 2
    assert rows["second"]["exclusive_bytes"] == 0  # a branch started from it
    deep = sum(len(data) for path, data in files().items() if path.startswith("tree/deep/"))
    assert rows["deep"]["exclusive_bytes"] == deep


def test_a_simulated_cleanup_comes_true(grown: LanceDataset, files: Any):
    rules = {"retain_versions": 1}
    freed = grown.space().freed_if(**rules)
    before = files()
    stats = grown.cleanup_old_versions(**rules, error_if_tagged_old_versions=False)
    assert (freed.size_bytes, freed.num_versions) == (stats.bytes_removed, stats.old_versions)
    assert set(freed.paths) == set(before) - set(files())


def test_dropped_refs_free_what_they_held(grown: LanceDataset, files: Any):
    space = grown.space()
    freed = space.freed_if(
        older_than=timedelta(0), drop_tags=["first", "second"], drop_branches=["dev", "deep"],
        delete_unverified=True,
    )  # fmt: skip
    before = files()
    grown.tags.delete("first")
    grown.tags.delete("second")
    grown.branches.delete("deep")
    grown.branches.delete("dev")
    grown.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert set(freed.paths) == set(before) - set(files())
    assert freed.size_bytes == sum(len(before[path]) for path in freed.paths)


def test_refs_that_do_not_exist_are_refused(grown: LanceDataset):
    space = grown.space()
    with pytest.raises(RefNotFoundError):
        space.freed_if(drop_tags=["none"])
    with pytest.raises(RefNotFoundError):
        space.freed_if(retain_versions=1, branch="none")
    with pytest.raises(RefNotFoundError):
        space.freed_if(retain_versions=1, branch="dev", drop_branches=["dev"])


def test_the_report_prints_and_counts_progress(grown: LanceDataset):
    seen: list[tuple[int, int]] = []
    text = str(grown.space(progress=lambda *step: seen.append(step)))
    assert seen == [(number, 8) for number in range(1, 9)]
    assert "orphan" in text
    assert "tag 'first' at main:1" in text


def test_damaged_manifests_are_listed(grown: LanceDataset):
    root = grown.opened[0].root
    name = next(one for one in root.list_names("_versions") if one.endswith("13.manifest"))
    root.write(f"_versions/{name}", b"damaged")
    found = grown.space()
    assert len(found.damaged) == 1
    assert "damaged" in str(found)


def test_the_tables_say_exactly_what_each_version_and_tag_holds(grown: LanceDataset, files: Any):
    space, there = grown.space(), files()
    rows = {one["path"]: one for one in space.files.to_pylist()}
    main = [one for one in space.versions.to_pylist() if one["branch"] is None]
    named: dict[int, list[str]] = {}
    for path, one in rows.items():
        if path.startswith("data/") and one["state"] in ("old", "current"):
            named.setdefault(one["oldest"], []).append(path)
            last = 4 if one["oldest"] == 2 else one["oldest"]  # the branches read it to the end
            assert one["num_versions"] >= 1
            assert one["oldest"] <= one["newest"] <= last
    assert sorted(named) == [1, 2, 3, 4]
    for one in main:
        version = one["version"]
        data = sum(len(there[path]) for path in named[version])
        manifest = one["manifest_bytes"]
        assert manifest in {len(d) for p, d in there.items() if p.startswith("_versions/")}
        transaction = one["referenced_bytes"] - manifest - data
        assert transaction in {len(d) for p, d in there.items() if p.startswith("_transactions/")}
        shared = data if version == 2 else 0
        assert one["exclusive_bytes"] == one["referenced_bytes"] - shared
    tags = {one["name"]: one for one in space.refs.to_pylist() if one["kind"] == "tag"}
    held = main[0]["referenced_bytes"] - main[0]["manifest_bytes"]
    assert tags["first"]["referenced_bytes"] == tags["first"]["exclusive_bytes"] == held
    unreferenced = [one for one in rows.values() if one["state"] in ("orphan", "other")]
    assert [(one["oldest"], one["newest"], one["num_versions"]) for one in unreferenced] == [
        (None, None, 0)
    ] * 2


def test_two_tags_on_one_version_hold_nothing_alone(grown: LanceDataset):
    grown.tags.create("again", 1)
    rows = {one["name"]: one for one in grown.space().refs.to_pylist()}
    assert rows["first"]["exclusive_bytes"] == rows["again"]["exclusive_bytes"] == 0
    assert rows["first"]["referenced_bytes"] == rows["again"]["referenced_bytes"] > 0


def test_states_without_a_file_have_no_bytes(make: Callable[..., LanceDataset]):
    found = make().space()
    assert (found.old_bytes, found.orphan_bytes, found.other_bytes) == (0, 0, 0)


def test_the_report_prints_shares_that_add_up(grown: LanceDataset):
    found = grown.space()
    lines = str(found).splitlines()[1:6]
    sizes = [getattr(found, f"{line.split()[0]}_bytes") for line in lines]
    assert [line.split()[1] for line in lines] == [f"{size:,}" for size in sizes]
    assert [line.split()[2] for line in lines] == [
        f"{size / found.total_bytes:.1%}" for size in sizes
    ]
    assert sum(sizes) == found.total_bytes > 0


def test_the_report_of_nothing_has_shares_of_zero(grown: LanceDataset):
    nothing = {f"{name}_bytes": 0 for name in ("total", "current", "old", "orphan", "other")}
    lines = str(replace(grown.space(), **nothing, bookkeeping_bytes=0)).splitlines()
    assert [line.split()[1:] for line in lines[1:6]] == [["0", "0.0%"]] * 5


def test_without_a_rule_no_version_is_freed(grown: LanceDataset, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retention, "DEFAULT_AGE", timedelta(0))  # of a clean-up without a rule
    freed = grown.space().freed_if()

    assert (freed.num_versions, freed.paths) == (0, ())


def test_the_versions_of_dropped_branches_are_counted(two_fragments) -> None:
    dev = two_fragments.create_branch("dev", 1)
    dev.insert(two_fragments.to_table())
    dev.create_branch("deep").delete("id = 1")
    space = two_fragments.space()
    counted = {
        names: space.freed_if(drop_branches=names).num_versions
        for names in ((), ("deep",), ("deep", "dev"))
    }
    assert counted == {(): 0, ("deep",): 2, ("deep", "dev"): 4}


def test_simulated_clean_ups_read_nothing_and_keep_what_merges_start_from(
    grown: LanceDataset, monkeypatch: pytest.MonkeyPatch
):
    dev = grown.checkout_version(("dev", None))
    dev.branches.merge("deep", on_conflict="theirs", copy=True)
    merged = grown.checkout_version(("deep", None)).version
    grown.checkout_version(("deep", None)).insert(grown.to_table())
    grown.insert(grown.to_table())
    space = grown.space()
    numbers = grown.checkout_version(("deep", None)).version_numbers()
    monkeypatch.setattr(merge_bases, "newest_marks", None)
    freed = space.freed_if(retain_versions=1, branch="deep")
    assert freed.num_versions == len(numbers) - 2
    assert merged not in space.simulator("deep").simulate(RetentionRule(1)).numbers
    alone = space.freed_if(retain_versions=1, branch="deep", drop_branches=["dev"])
    dev_numbers = grown.checkout_version(("dev", None)).version_numbers()
    assert alone.num_versions == len(numbers) - 1 + len(dev_numbers)
    assert space.simulator().simulate(RetentionRule(1)).numbers == (3, merged)  # merged is deep's
