"""Random histories: what tables, feeds and lives of rows tell is what comparing versions tells."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from tests.support.diffs import History, Rows, check_diff

SEEDS = range(4)


class Forward(History):
    """A history without a way back: no version is restored, no column dropped."""

    @property
    def verbs(self) -> list[Callable[[], None]]:
        return [self.append, self.delete, self.update, self.add_column, self.compact]

    def step(self) -> None:
        self.random.choice(self.verbs)()
        self.ds = lance_nb.dataset(self.uri)
        self.note()


class Settings(Forward):
    """A history that also renames and drops columns, changes settings and makes indices."""

    def step(self) -> None:
        if self.random.random() < 0.5:
            super().step()
            return
        verbs = [self.rename, self.drop_column, self.configure, self.describe, self.index]
        self.random.choice(verbs)()
        self.ds = lance_nb.dataset(self.uri)
        self.note()

    def rename(self) -> None:
        old = next((name for name in self.ds.schema.names if name.startswith("c")), None)
        if old is not None:
            self.ds.alter_columns({"path": old, "name": f"{old}r"})
            for row in self.rows.values():
                row[f"{old}r"] = row.pop(old)

    def configure(self) -> None:
        key = self.random.choice("abc")
        if key in self.ds.config() and self.random.random() < 0.4:
            self.ds.delete_config_keys([key])
        else:
            self.ds.update_config({key: str(self.random.randint(0, 2))})

    def describe(self) -> None:
        self.ds.update_schema_metadata({"k": str(self.random.randint(0, 2))})

    def index(self) -> None:
        self.ds.create_scalar_index("id", "BTREE", replace=True)


class Line(Forward):
    """One of two branches that go on for themselves."""

    branch: str | None = None

    def fork(self, name: str) -> Line:
        """Begin a branch at the newest version."""
        other = copy.deepcopy(self, {id(self.ds): self.ds})
        other.branch, other.next_id = name, 1000
        other.random.seed(f"{name} {self.next_id}")
        self.ds.create_branch(name)
        other.open()
        return other

    def open(self) -> None:
        where = None if self.branch is None else (self.branch, None)
        self.ds = lance_nb.dataset(self.uri, where)

    def step(self) -> None:
        self.random.choice(self.verbs)()
        self.open()
        self.note()

    def append(self) -> None:
        table = self.new_rows(self.random.randint(1, 6))
        lance_nb.write_dataset(table, self.ds, mode="append", max_rows_per_file=4)

    def compact(self) -> None:
        self.ds.optimize.compact_files()

    @property
    def place(self) -> str:
        return f"{self.branch or 'main'}:{self.ds.version}"


def _grown(kind: type[History], seed: int, *, stable: bool, steps: int = 8) -> History:
    history = kind(seed, stable=stable)
    for _ in range(steps):
        history.step()
    return history


def _shared(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [name for name in new if name in old and old[name] != new[name]]


# --- the feed -------------------------------------------------------------------------------------


def _feed_of(versions: dict[int, Rows], begin: int, end: int) -> Iterator[tuple[Any, ...]]:
    for version in range(begin + 1, end + 1):
        old, new = versions[version - 1], versions[version]
        for key in old.keys() - new.keys():
            yield version, "delete", key, old[key]
        for key in old.keys() & new.keys():
            if _shared(old[key], new[key]):
                yield version, "update_preimage", key, old[key]
                yield version, "update_postimage", key, new[key]
        for key in new.keys() - old.keys():
            yield version, "insert", key, new[key]


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_feed_tells_what_each_version_changed(seed: int, stable: bool) -> None:
    history = _grown(History, seed, stable=stable)
    versions = sorted(history.versions)
    begin, end = sorted(random.Random(seed).sample(versions, 2))
    for first, last in ((begin, end), (versions[0], versions[-1])):
        names = history.ds.checkout_version(last).schema.names
        key = None if stable else "id"
        found = history.ds.changes(first, last, key=key, batch_size=3).read_all().to_pylist()
        told = [
            (row["_commit_version"], row["_change_type"], row["id"],
             {name: row[name] for name in names})
            for row in found
        ]  # fmt: skip
        expected = [
            (version, kind, number, {name: row.get(name) for name in names})
            for version, kind, number, row in _feed_of(history.versions, first, last)
        ]
        assert sorted(told, key=repr) == sorted(expected, key=repr)
        order = {"delete": 0, "update_preimage": 1, "update_postimage": 1, "insert": 2}
        places = [(version, order[kind]) for version, kind, *_ in told]
        assert places == sorted(places)
        for row in found:
            info = history.ds.version_info(row["_commit_version"])
            assert row["_commit_timestamp"] == info.timestamp


# --- the life of a row ----------------------------------------------------------------------------


def _life_of(versions: dict[int, Rows], key: int) -> Iterator[tuple[Any, ...]]:
    numbers = sorted(versions)
    if key in versions[numbers[0]]:
        yield numbers[0], "created", ()
    for before, after in pairwise(numbers):
        old, new = versions[before].get(key), versions[after].get(key)
        if old is None and new is not None:
            yield after, "created", ()
        elif old is not None and new is None:
            yield after, "deleted", ()
        elif old is not None and new is not None:
            if _shared(old, new):
                yield after, "updated", tuple(_shared(old, new))
            if new.keys() - old.keys():
                yield after, "extended", tuple(new.keys() - old.keys())


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_life_of_a_row_is_what_its_versions_tell(seed: int, stable: bool) -> None:
    history = _grown(Forward, seed, stable=stable)
    ever = sorted({key for rows in history.versions.values() for key in rows})
    for key in random.Random(seed).sample(ever, min(6, len(ever))):
        steps = history.ds.row_history(key={"id": key}).steps()
        told = [(one.version, one.event, one.columns) for one in steps if one.event != "moved"]
        expected = list(_life_of(history.versions, key))
        assert [one[:2] for one in told] == [one[:2] for one in expected]
        assert [one[2] for one in told if one[1] in ("updated", "extended")] == [
            one[2] for one in expected if one[1] in ("updated", "extended")
        ]
        for one in steps:
            before, after = history.versions.get(one.version - 1), history.versions[one.version]
            if one.event == "updated" and before is not None:
                assert (one.old, one.new) == (before[key], after[key])
            if one.event == "deleted" and before is not None:
                assert one.old == before[key]
            if one.event != "deleted":
                there = history.ds.checkout_version(one.version)
                rows = there.to_table(["id", "_rowaddr"], f"id = {key}").to_pylist()
                place = one.fragment_id << 32 | one.offset
                assert rows == [{"id": key, "_rowaddr": place}]


# --- branches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_diff_of_two_branches_applied_to_one_gives_the_other(seed: int, stable: bool) -> None:
    main = Line(seed, stable=stable)
    for _ in range(3):
        main.step()
    dev = main.fork("dev")
    fork = main.ds.version
    for _ in range(3):
        main.step()
        dev.step()
    for left, right in ((main, dev), (dev, main)):
        for key in (None, "id"):
            diff = main.ds.diff(left.place, right.place, key=key)
            check_diff(diff, left.rows, right.rows)
            assert (diff.ancestor.branch, diff.ancestor.version) == (None, fork)
            sides = diff.transactions["side"].to_pylist()
            assert sides.count("a") == left.ds.version - fork
            assert sides.count("b") == right.ds.version - fork


@pytest.mark.parametrize("stable", [True, False])
def test_rows_that_were_moved_twice_are_the_rows_that_they_were(stable: bool) -> None:
    history = Forward(3, stable=stable)
    history.ds.optimize.compact_files()
    once = lance_nb.dataset(history.uri)
    history.append()
    lance_nb.dataset(history.uri).delete("id = 4")
    lance_nb.dataset(history.uri).optimize.compact_files()
    twice = lance_nb.dataset(history.uri)

    assert len(once.get_fragments()) == len(twice.get_fragments()) == 1
    for a, b, kinds in ((once, twice, ("added", "removed")), (twice, once, ("removed", "added"))):
        found = twice.diff(a.version, b.version).rows().read_all().to_pylist()
        told = {kind: {row["id"] for row in found if row["_change"] == kind} for kind in kinds}
        assert told == {kinds[0]: set(range(12, history.next_id)), kinds[1]: {4}}
        assert len(found) == len(set().union(*told.values()))


# --- manifests ------------------------------------------------------------------------------------


def _live(ds: LanceDataset) -> dict[int, set[int]]:
    """The offsets of the live rows, by fragment."""
    found: dict[int, set[int]] = {}
    for address in ds.to_table(["_rowaddr"])["_rowaddr"].to_pylist():
        found.setdefault(address >> 32, set()).add(address & 0xFFFFFFFF)
    return found


def _content(fragment: Any) -> Any:
    """What makes a fragment another one: its rows may get other row ids or versions."""
    return fragment and (fragment.files, fragment.deletion_file)


def _size(fragment: Any) -> int:
    return sum(file.size_bytes for file in fragment.files)


def _check_fragments(diff: Any, a: LanceDataset, b: LanceDataset) -> None:
    before = {one.id: one for one in a.opened[1].manifest.fragments}
    after = {one.id: one for one in b.opened[1].manifest.fragments}
    live_a, live_b = _live(a), _live(b)
    rows, deletions = [], []
    for number in sorted(before.keys() | after.keys()):
        old, new = before.get(number), after.get(number)
        if _content(old) == _content(new):
            continue
        row: dict[str, Any] = dict.fromkeys(diff.fragments.schema.names)
        kind = "added" if old is None else "removed" if new is None else "changed"
        row |= {"change": kind, "fragment_id": number}
        for when, one, live in (("before", old, live_a), ("after", new, live_b)):
            if one is not None:
                row |= {
                    f"rows_{when}": len(live[number]), f"files_{when}": len(one.files),
                    f"deleted_{when}": one.physical_rows - len(live[number]),
                    f"bytes_{when}": _size(one),
                }  # fmt: skip
        if old is not None and new is not None:
            row["files_differ"] = old.files != new.files
            row["deletions_differ"] = old.deletion_file != new.deletion_file
            if row["deletions_differ"]:
                deletions.append({
                    "fragment_id": number, "physical_rows": new.physical_rows,
                    "deleted_before": old.physical_rows - len(live_a[number]),
                    "deleted_after": new.physical_rows - len(live_b[number]),
                    "rows_deleted": len(live_a[number] - live_b[number]),
                    "rows_undeleted": len(live_b[number] - live_a[number]),
                })  # fmt: skip
        rows.append(row)
    assert diff.fragments.to_pylist() == rows
    assert diff.deletions.to_pylist() == deletions
    files_a = {file.path: (one.id, file) for one in before.values() for file in one.files}
    files_b = {file.path: (one.id, file) for one in after.values() for file in one.files}
    files = [
        {"change": kind, "fragment_id": mine[path][0], "path": path,
         "size_bytes": mine[path][1].size_bytes}
        for kind, mine, other in (("added", files_b, files_a), ("removed", files_a, files_b))
        for path in mine.keys() - other.keys()
    ]  # fmt: skip
    found = diff.files.select(["change", "fragment_id", "path", "size_bytes"]).to_pylist()
    assert sorted(found, key=repr) == sorted(files, key=repr)
    counts = diff.counts
    kinds = [row["change"] for row in rows]
    assert (counts.fragments_added, counts.fragments_removed, counts.fragments_changed) == (
        kinds.count("added"), kinds.count("removed"), kinds.count("changed"),
    )  # fmt: skip
    assert counts.fragments_equal == sum(
        _content(before[one]) == _content(after.get(one)) for one in before
    )
    assert (counts.rows_before, counts.rows_after) == (a.count_rows(), b.count_rows())
    for kind in ("added", "removed"):
        mine = [one for one in files if one["change"] == kind]
        assert getattr(counts, f"files_{kind}") == len(mine)
        assert getattr(counts, f"bytes_{kind}") == sum(one["size_bytes"] for one in mine)
    back = sum(one["rows_undeleted"] for one in deletions)
    came = sum(row["rows_after"] for row in rows if row["change"] == "added")
    went = sum(row["rows_before"] for row in rows if row["change"] == "removed")
    if not back:
        assert (counts.rows_deleted, counts.rows_in) == (
            sum(one["rows_deleted"] for one in deletions), came,
        )  # fmt: skip
        assert counts.rows_out == went + counts.rows_deleted


def _check_settings(diff: Any, a: LanceDataset, b: LanceDataset) -> None:
    settings = []
    for kind, old, new in (
        ("config", a.config(), b.config()),
        ("metadata", a.metadata, b.metadata),
        ("schema metadata", a.schema_metadata, b.schema_metadata),
    ):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                change = "added" if key not in old else "removed" if key not in new else "changed"
                row = {"change": change, "kind": kind, "key": key}
                settings.append(row | {"old": old.get(key), "new": new.get(key)})
    assert diff.config.to_pylist() == settings
    columns = {(row["change"], row["old_column"], row["column"]) for row in diff.schema.to_pylist()}
    old_ids = {one.id: one.name for one in a.opened[1].manifest.schema}
    new_ids = {one.id: one.name for one in b.opened[1].manifest.schema}
    expected = {("renamed", old_ids[key], name) for key, name in new_ids.items()
                if old_ids.get(key, name) != name}  # fmt: skip
    renamed = {name for _, *both in expected for name in both}
    expected |= {("added", None, name) for name in new_ids.values()
                 if name not in old_ids.values() and name not in renamed}  # fmt: skip
    expected |= {("removed", name, name) for name in old_ids.values()
                 if name not in new_ids.values() and name not in renamed}  # fmt: skip
    assert columns == expected
    was, now = ({one.uuid: one for segments in ds.describe_indices() for one in segments.segments}
                for ds in (a, b))  # fmt: skip
    found = {(row["change"], row["uuid"]) for row in diff.indices.to_pylist()}
    assert {one for one in found if one[0] != "changed"} == {
        *(("added", one) for one in now.keys() - was.keys()),
        *(("removed", one) for one in was.keys() - now.keys()),
    }
    for row in diff.indices.to_pylist():
        assert (row["name"], row["columns"]) in (("id_idx", ["id"]), ("__lance_frag_reuse", []))
        for when, ds, mine in (("before", a, was), ("after", b, now)):
            there = {one.id for one in ds.opened[1].manifest.fragments}
            segment = mine.get(row["uuid"])
            covered = None if segment is None else len(segment.fragment_ids & there)
            assert row[f"fragments_{when}"] == covered


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_a_diff_are_those_of_a_comparison_of_manifests(seed: int, stable: bool) -> None:
    history = _grown(Settings, seed, stable=stable, steps=10)
    choose = random.Random(seed)
    pairs = list(combinations(sorted(history.versions), 2))
    for older, newer in choose.sample(pairs, min(4, len(pairs))):
        for ends in ((older, newer), (newer, older)):
            a, b = (history.ds.checkout_version(one) for one in ends)
            diff = history.ds.diff(*ends)
            _check_fragments(diff, a, b)
            _check_settings(diff, a, b)
            between = diff.transactions.to_pylist()
            side = "b" if ends == (older, newer) else "a"
            assert [(one["version"], one["side"]) for one in between] == [
                (version, side) for version in range(older + 1, newer + 1)
            ]
            infos = [history.ds.version_info(one["version"]) for one in between]
            assert [one["operation"] for one in between] == [one.operation for one in infos]
            assert [one["timestamp"] for one in between] == [one.timestamp for one in infos]
            assert diff.counts.transactions == newer - older
            assert diff.counts.is_empty == (ends[0] == ends[1] or not _anything(diff))


def _anything(diff: Any) -> bool:
    return any(one.num_rows for one in (diff.fragments, diff.config, diff.schema, diff.indices))
