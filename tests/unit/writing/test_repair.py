"""Repairs: what is planned, what is done, what is held back, and the way back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    RefConflictError,
    RefNotFoundError,
)
from lance_nb.format.layout import HINT_PATH, branch_path, manifest_path, tag_path
from lance_nb.storage.memory import MemoryStore
from lance_nb.writing import repair as repair_module
from lance_nb.writing.repair import HINT, MOVED, SET_ASIDE, Quarantine, RepairStep
from tests.support.damages import DAMAGES, MENDED, NEWEST, Damaged, Files, Plant
from tests.support.recorded_texts import REPAIRS, built, heading, recorded, repairs_text

AT_ONCE = timedelta(0)
DATA = ("data/", "_deletions/", "_indices/", "_transactions/", "tree/dev/data/")
URI = "memory://repairs/d.lance"
_TEXTS = recorded(REPAIRS)


@cache
def whole() -> tuple[Damaged, Files]:
    return built(URI, stable=False)


@pytest.fixture
def world() -> Damaged:
    """Return the dataset, undamaged."""
    made, files = whole()
    made.put(files)
    return made


def repair(world: Damaged) -> lance_nb.RepairResult:
    return lance_nb.plan_repair(world.uri, older_than=AT_ONCE).run()


@pytest.mark.parametrize(
    "damage",
    [one for one in DAMAGES if one.code in MENDED and one.only != "stable"],
    ids=lambda one: one.name.replace(" ", "-"),
)
def test_what_can_be_mended_is(damage: object, world: Damaged) -> None:
    damage.plant(world)
    before = world.take()
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    assert world.take() == before, "a plan changes nothing"
    assert repairs_text(plan) == _TEXTS[heading(damage, stable=False)]
    assert plan.ready == plan.steps
    result = plan.run()
    assert len(result.done) == len(plan.steps) >= 1, result
    assert not result.failed
    found = lance_nb.verify(world.uri)
    assert damage.code not in {one.code for one in found.findings}, found
    dataset = lance_nb.dataset(world.uri)
    assert dataset.count_rows() == 28
    dataset.delete("id = 11")
    assert dataset.count_rows() == 27
    kept = world.take()
    lost = {path: data for path, data in before.items() if kept.get(path) != data}
    aside = {path.split("/files/")[1]: data for path, data in kept.items() if "/files/" in path}
    assert all(aside.get(path) == data or path.endswith(HINT_PATH) for path, data in lost.items())


@pytest.mark.parametrize(
    "damage",
    [one for one in DAMAGES if one.code not in MENDED and one.only != "stable"],
    ids=lambda one: one.name.replace(" ", "-"),
)
def test_what_cannot_be_mended_is_left_alone(damage: object, world: Damaged) -> None:
    damage.plant(world)
    before = world.take()
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    assert repairs_text(plan) == _TEXTS.get(heading(damage, stable=False), [])
    # a step may be for what the damage has led to, but never one for data that is lost
    assert all(one.kind in ("hint", "quarantine") for one in plan.steps)
    result = plan.run()
    after = world.take()
    assert all(after[path] == data for path, data in before.items() if path.startswith(DATA))
    assert result.done == plan.ready


def test_the_last_good_version_is_restored_under_a_new_number(world: Damaged) -> None:
    for version in (NEWEST, NEWEST - 1):
        world.root.write(manifest_path(version), b"")
    with pytest.raises(CorruptFileError):
        lance_nb.dataset(world.uri)
    report = lance_nb.verify(world.uri)
    assert report.opened_version == 5
    result = repair(world)
    dataset = lance_nb.dataset(world.uri)
    assert (dataset.version, dataset.version_numbers()) == (8, [1, 2, 3, 4, 5, 8])
    assert dataset.count_rows() == 18
    done = dataset.transaction()
    assert (done.operation, done.read_version) == ("Restore", 5)
    assert "the newest version cannot be opened" in done.message
    assert lance_nb.verify(world.uri).findings == ()
    back = lance_nb.undo_repair(world.uri)
    assert back == [manifest_path(7), manifest_path(6)]
    assert bytes(world.root.read(manifest_path(7))) == b""
    assert lance_nb.dataset(world.uri).version == 8
    assert result.id


def test_a_branch_is_restored_too(world: Damaged) -> None:
    path = manifest_path(4)
    world.change(f"tree/dev/{path}", lambda data: data[:99])
    repair(world)
    dataset = lance_nb.dataset(world.uri, version=("dev", None))
    assert (dataset.version, dataset.count_rows()) == (5, 18)
    assert lance_nb.verify(world.uri).ok


def test_nothing_is_done_while_a_commit_may_be_under_way(world: Damaged) -> None:
    world.root.write(manifest_path(NEWEST), b"")
    plan = lance_nb.plan_repair(world.uri)
    assert plan.ready == ()
    assert "under way" in plan.steps[0].held_back
    before = world.take()
    result = plan.run()
    assert not result.done
    assert "under way" in str(result)
    assert world.take() == before


def test_a_plan_that_is_overtaken_does_nothing(world: Damaged) -> None:
    whole_manifest = bytes(world.root.read(manifest_path(NEWEST)))
    world.root.write(manifest_path(NEWEST), b"")
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    world.root.write(manifest_path(NEWEST), whole_manifest)
    result = plan.run()
    assert not result.done
    assert "another plan" in str(result)
    assert bytes(world.root.read(manifest_path(NEWEST))) == whole_manifest


def test_a_version_that_appears_meanwhile_is_not_overwritten(
    world: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who does not see the damage commits between our look and our write."""
    world.root.write(manifest_path(NEWEST), b"")
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    original = repair_module.write_transaction_file

    def interrupted(home: object, version: object) -> str:
        world.root.write(manifest_path(NEWEST + 1), b"of somebody else")
        return original(home, version)

    monkeypatch.setattr(repair_module, "write_transaction_file", interrupted)
    result = plan.run()
    assert not result.done
    assert "committed meanwhile" in str(result)
    assert bytes(world.root.read(manifest_path(NEWEST + 1))) == b"of somebody else"
    assert world.root.exists(manifest_path(NEWEST))


def test_a_staged_manifest_is_left_to_its_store(world: Damaged) -> None:
    staged = f"{manifest_path(9)}-00000000-0000-0000-0000-000000000001"
    world.root.write(staged, b"x")
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    assert [one.held_back[:33] for one in plan.steps] == [
        "an external manifest store may have"[:33]
    ]
    plan.run()
    assert world.root.exists(staged)


def test_what_a_newer_release_wrote_is_left_alone(world: Damaged) -> None:
    world.edit(lambda message, _: setattr(message, "reader_feature_flags", 1 << 40))
    assert lance_nb.plan_repair(world.uri, older_than=AT_ONCE).steps == ()


def test_an_interrupted_step_loses_nothing(world: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    world.root.write(tag_path("kept"), b"{")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Quarantine, "move", stop)
        with pytest.raises(KeyboardInterrupt):
            repair(world)
    assert bytes(world.root.read(tag_path("kept"))) == b"{"
    assert repair(world).done
    assert lance_nb.dataset(world.uri).tags.list() == {}


def test_the_quarantine_says_what_it_holds(world: Damaged) -> None:
    world.root.write(branch_path("dev"), b"")
    identity = repair(world).id
    record = json.loads(bytes(world.root.read(f"_quarantine/{identity}/repair.json")))
    assert record["files"] == [branch_path("dev")]
    assert record["steps"][0]["kind"] == "quarantine"
    assert lance_nb.dataset(world.uri, version=("dev", None)).count_rows() == 28
    assert lance_nb.undo_repair(world.uri, identity) == [branch_path("dev")]
    assert bytes(world.root.read(branch_path("dev"))) == b""


def no_start(world: Damaged) -> None:
    """Let the folder of a branch have no record, and nothing that says where it started."""
    for path, data in world.take().items():
        if path.startswith("tree/dev/"):
            world.root.write(path.replace("tree/dev/", "tree/copy/x/"), data)


def no_fork(world: Damaged) -> None:
    """Let an unfinished branch start from a version that does not exist."""
    world.root.write(branch_path("copy/x"), b'{"parentVersion": 99}')


UNDONE = [
    pytest.param(damage.plant, id=damage.name.replace(" ", "-"))
    for damage in DAMAGES
    if damage.code in MENDED and damage.only != "stable"
]


@pytest.mark.parametrize("plant", [*UNDONE, no_start, no_fork])
def test_all_that_a_repair_moves_is_brought_back(plant: Plant, world: Damaged) -> None:
    plant(world)
    before = world.take()
    result = repair(world)
    moved = [path for step in result.done for path in step.moved]
    if not moved:
        assert result.id == ""
        return
    assert lance_nb.undo_repair(world.uri) == moved
    after = world.take()
    assert {path: after.get(path) for path in moved} == {path: before[path] for path in moved}
    assert not [path for path in after if "/files/" in path or "/made/" in path]
    assert lance_nb.undo_repair(world.uri) == []  # there is nothing left to move
    assert repair(world).done  # what is back can be repaired again


def test_an_undo_that_was_interrupted_is_ended_by_the_next(
    world: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_start(world)
    before = world.take()
    repair(world)
    moves = iter(range(3))

    class Interrupted(Quarantine):
        def _put_back(self, path: str) -> None:
            if next(moves, None) is None:
                raise KeyboardInterrupt
            super()._put_back(path)

    with monkeypatch.context() as patched:
        patched.setattr(repair_module, "Quarantine", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            lance_nb.undo_repair(world.uri)
    assert lance_nb.undo_repair(world.uri)
    after = world.take()
    assert {path: after.get(path) for path in before} == before


def a_record_with_metadata(world: Damaged) -> None:
    lance_nb.dataset(world.uri).branches.replace_metadata("dev", {"by": "somebody"})


def a_new_branch(world: Damaged) -> None:
    lance_nb.dataset(world.uri).create_branch("copy/x", 3)


def versions_of_a_new_branch(world: Damaged) -> None:
    """Let a creation by pylance have been interrupted: it writes the version first."""
    a_new_branch(world)
    world.root.delete(branch_path("copy/x"))


def a_new_tag(world: Damaged) -> None:
    lance_nb.dataset(world.uri).tags.create("kept", 3)


@pytest.mark.parametrize(
    ("plant", "meanwhile", "name"),
    [
        (lambda world: world.root.write(branch_path("dev"), b""), a_record_with_metadata, "dev"),
        (lambda world: world.root.write(tag_path("kept"), b"{"), a_new_tag, "kept"),
        (no_start, a_new_branch, "copy/x"),
        (no_start, versions_of_a_new_branch, "copy/x"),
        (no_fork, a_new_branch, "copy%2Fx"),
    ],
    ids=["record", "tag", "branch", "versions", "unfinished"],
)
def test_what_was_written_after_a_repair_is_not_overwritten_by_its_undoing(
    plant: Plant, meanwhile: Plant, name: str, world: Damaged
) -> None:
    plant(world)
    repair(world)
    meanwhile(world)
    before = world.take()
    with pytest.raises(RefConflictError, match=f"no file was moved back: .*{name}"):
        lance_nb.undo_repair(world.uri)
    assert world.take() == before


@pytest.fixture
def external(tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Return a dataset of three versions whose commits are decided in a database."""
    options = {"manifest_store": f"sqlite:///{tmp_path}/manifests.db"}
    uri = str(tmp_path / "d.lance")
    rows = pa.table({"id": range(5)})
    dataset = lance_nb.write_dataset(rows, uri, storage_options=options)
    for _ in range(2):
        dataset.insert(rows)
    return uri, options


def test_a_half_finished_external_commit_is_finished_with_its_store(
    external: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    uri, options = external
    newest = tmp_path / "d.lance" / manifest_path(3)
    suffix = "-00000000-0000-0000-0000-000000000001"
    newest.rename(f"{newest}{suffix}")
    with closing(sqlite3.connect(tmp_path / "manifests.db")) as store, store:
        store.execute("update lance_manifests set path = path || ? where version = 3", (suffix,))
    plan = lance_nb.plan_repair(uri, older_than=AT_ONCE)
    assert [one.kind for one in plan.steps] == ["quarantine"]
    assert "external manifest store" in plan.steps[0].held_back
    found = lance_nb.verify(uri, storage_options=options)
    assert found.ok
    assert found.opened_version == 3
    assert lance_nb.verify(uri).findings == ()


def test_a_version_is_restored_through_its_manifest_store(
    external: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    uri, options = external
    (tmp_path / "d.lance" / manifest_path(3)).write_bytes(b"")
    lance_nb.plan_repair(uri, older_than=AT_ONCE, storage_options=options).run()
    dataset = lance_nb.dataset(uri, storage_options=options)
    assert (dataset.version, dataset.count_rows()) == (4, 10)
    dataset.insert(pa.table({"id": [1]}))
    assert lance_nb.verify(uri, storage_options=options).findings == ()


def test_a_branch_whose_first_version_is_of_another_branch_is_quarantined(world: Damaged) -> None:
    for path, data in world.take().items():
        if path.startswith("tree/dev/"):
            world.root.write(path.replace("tree/dev/", "tree/copy/"), data)
    (step,) = lance_nb.plan_repair(world.uri, older_than=AT_ONCE).steps
    assert (step.kind, step.branch) == ("quarantine", "copy")
    assert "nothing records where it started" in step.what


@pytest.mark.parametrize("is_newest", [True, False])
def test_a_repair_that_was_interrupted_is_ended_by_the_next(
    world: Damaged, is_newest: bool
) -> None:
    """It has made the version that restores, and the damaged manifest is not in quarantine yet."""
    world.root.write(manifest_path(NEWEST), b"cut")
    repair(world)
    world.root.write(manifest_path(NEWEST), b"cut")
    if not is_newest:
        lance_nb.dataset(world.uri).delete("id = 11")
    version = lance_nb.dataset(world.uri).version
    assert [one.moved for one in repair(world).done] == [(manifest_path(NEWEST),)]
    assert lance_nb.verify(world.uri).ok
    assert lance_nb.dataset(world.uri).version == version


def test_an_old_damaged_manifest_stays_unless_it_was_restored_over(world: Damaged) -> None:
    dataset = lance_nb.dataset(world.uri)
    dataset.checkout_version(NEWEST).restore()
    lance_nb.dataset(world.uri).delete("id = 11")
    world.root.write(manifest_path(NEWEST), b"cut")
    assert not repair(world).done
    assert bytes(world.root.read(manifest_path(NEWEST))) == b"cut"


def test_a_tag_of_a_version_in_quarantine_says_so(world: Damaged) -> None:
    lance_nb.dataset(world.uri).tags.create("newest", NEWEST)
    world.root.write(manifest_path(NEWEST), b"")

    repair(world)
    found = lance_nb.verify(world.uri).findings

    (dangling,) = [one for one in found if one.code == "tag-dangling"]
    assert dangling.path == tag_path("newest")
    assert dangling.message.endswith("could not be read and was moved to quarantine by a repair")
    assert f"'newest' points at main:{NEWEST}, whose manifest" in dangling.message


def test_a_dataset_whose_only_manifest_is_empty_is_reported_what_helps() -> None:
    uri = "memory://one-empty-manifest/d.lance"
    lance_nb.write_dataset(pa.table({"id": [1]}), uri)
    Damaged(uri).root.write(manifest_path(1), b"")

    report = lance_nb.verify(uri)
    plan = lance_nb.plan_repair(uri, older_than=timedelta(0))

    assert [one.code for one in report.of("error")] == ["none-readable"]
    assert "put a manifest back from a copy" in report.of("error")[0].remedy
    assert report.opened_version is None
    assert plan.steps == ()


def test_a_file_of_the_largest_size_is_moved_and_a_larger_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repair_module, "FILE_BYTES_MAX", 10)
    store = MemoryStore("largest")
    store.write("_versions/most", bytes(10))
    store.write("_versions/more", bytes(11))
    aside = Quarantine(store, "1")

    aside.move("_versions/most")
    with pytest.raises(InvalidInputError, match="has 11 bytes, more than 10"):
        aside.move("_versions/more")

    assert store.list_names("_versions") == ["more"]
    assert bytes(store.read(aside.place("_versions/most"))) == bytes(10)
    assert not store.exists(aside.place("_versions/more"))


@pytest.mark.parametrize(
    "record", [b"[" * 100_000, b'{"files":' + b"[" * 200_000 + b"]" * 200_000 + b"}"]
)
def test_a_record_that_is_nested_too_deeply_is_none(world: Damaged, record: bytes) -> None:
    world.root.write("_quarantine/x/repair.json", record)
    with pytest.raises(RefNotFoundError, match="'x'"):
        lance_nb.undo_repair(world.uri)


def test_a_hint_is_not_written_for_a_version_that_was_overtaken(
    world: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.root.write(HINT_PATH, b"{")
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    original = repair_module.changed_since

    def overtaken(root: object, step: object) -> object:
        changed = original(root, step)
        newest = bytes(world.root.read(manifest_path(NEWEST)))
        world.root.write(manifest_path(NEWEST + 1), newest)
        return changed

    monkeypatch.setattr(repair_module, "changed_since", overtaken)
    result = plan.run()

    assert "committed meanwhile" in str(result)
    assert bytes(world.root.read(HINT_PATH)) == b"{"


NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def held(*seconds: int | None, kind: str = SET_ASIDE, held_back: str = "") -> str:
    state = {
        str(at): (1, None if one is None else NOW - timedelta(seconds=one))
        for at, one in enumerate(seconds)
    }
    step = RepairStep(kind, "what", "why", held_back=held_back)
    return repair_module._held_back(step, state, NOW, HOUR)


def test_steps_on_files_that_changed_lately_wait() -> None:
    assert held() == ""
    assert held(3600, 7200) == ""
    assert held(7200, 3599).startswith("it changed 3599 s ago")
    assert held(-5).startswith("it changed 0 s ago")
    assert "until it is 1 h old" in held(5)
    assert held(7200, None).startswith("the store does not say")


def test_nothing_waits_when_nobody_writes_even_if_the_clock_of_the_store_is_ahead() -> None:
    state = {"a": (1, NOW + HOUR), "b": (1, None)}
    step = RepairStep(SET_ASIDE, "what", "why")
    assert repair_module._held_back(step, state, NOW, timedelta(0)) == ""


def test_hints_and_base_paths_do_not_wait_and_a_reason_stays() -> None:
    assert held(5, kind=HINT) == held(None, kind=MOVED) == ""
    assert held(7200, held_back="reason") == "reason"


@pytest.mark.parametrize(
    ("seconds", "words"), [(3600, "1 h"), (7200, "2 h"), (90, "90 s"), (3601, "3601 s"), (0, "0 h")]
)
def test_ages_are_reported_in_hours_or_seconds(seconds: int, words: str) -> None:
    assert repair_module._words(timedelta(seconds=seconds)) == words


def test_a_step_prints_its_files_and_why_it_waits() -> None:
    step = RepairStep(SET_ASIDE, "what", "why", files=("a", "b"), held_back="later")
    expected = "quarantine: what\n  because why\n  file a\n  file b\n  held back: later"
    assert str(step) == expected
