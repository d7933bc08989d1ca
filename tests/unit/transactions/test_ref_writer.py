"""Writing the records of refs, and tags."""

from __future__ import annotations

import json
import threading
import uuid

import pytest

from lance_nb.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    InvalidRefError,
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    RefConflictError,
    RefNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.storage.memory import MemoryStore
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions import ref_writer
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.ref_writer import (
    TagWriter,
    create_record,
    delete_record,
    ordered_branches,
    ordered_tags,
    replace_record,
)
from lance_nb.writing.branching import BranchWriter
from tests.support.committing import START_NS, Table
from tests.support.faulty_store import Fault, FaultyStore, on

PATH = "_refs/tags/v1.json"


class _InSteps(MemoryStore):
    """A store that cannot compare and replace in one step."""

    replace = None


def _store(plan=None, kind=MemoryStore):
    inner = kind(uuid.uuid4().hex)
    return inner if plan is None else FaultyStore(inner, plan)


def test_a_record_is_created_once():
    store = _store()
    create_record(store, PATH, b"mine", "tag 'v1'")
    with pytest.raises(RefConflictError, match="tag 'v1' already exists"):
        create_record(store, PATH, b"other", "tag 'v1'")
    assert bytes(store.read(PATH)) == b"mine"


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REPLY_REPEATED])
def test_a_record_whose_creation_was_reported_failed_is_recognised(fault: Fault):
    store = _store(on("write_if_absent", "", fault))
    create_record(store, PATH, b"mine", "tag")
    assert bytes(store.read(PATH)) == b"mine"


@pytest.mark.parametrize(
    ("fault", "told"),
    [(Fault.ERROR_BEFORE, StorageError), (Fault.UNKNOWN_BEFORE, CommitStateUnknownError)],
    ids=["failed", "unknown"],
)
def test_a_record_that_is_not_there_is_not_reported_created(fault: Fault, told: type):
    store = _store(on("write_if_absent", "", fault))
    with pytest.raises(told):
        create_record(store, PATH, b"mine", "tag")
    assert not store.exists(PATH)


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps])
def test_a_record_is_replaced_if_nobody_changed_it(kind):
    store = _store(kind=kind)
    store.write(PATH, b"old")
    replace_record(store, PATH, b"old", b"new", "tag")
    with pytest.raises(RefConflictError, match="changed by another process"):
        replace_record(store, PATH, b"old", b"newer", "tag")
    assert bytes(store.read(PATH)) == b"new"
    with pytest.raises(ObjectNotFoundError):
        replace_record(store, "_refs/tags/x.json", b"old", b"new", "tag")


def test_a_change_that_was_overwritten_in_between_is_reported():
    inner = _InSteps(uuid.uuid4().hex)
    inner.write(PATH, b"old")

    class Overwriting(_InSteps):
        def write(self, path, data) -> None:
            super().write(path, data)
            super().write(path, b"somebody else's")

    store = Overwriting(inner.uri.removeprefix("memory://"))
    with pytest.raises(RefConflictError):
        replace_record(store, PATH, b"old", b"new", "tag")


def test_deleting_tells_whether_there_was_one():
    store = _store()
    store.write(PATH, b"1")
    assert delete_record(store, PATH, "tag") is True
    assert delete_record(store, PATH, "tag") is False


def test_a_record_that_cannot_be_read_back_is_of_unknown_outcome():
    store = _store(_plans(on("write_if_absent", "", Fault.LOST_REPLY), on("read", "", ERROR)))
    with pytest.raises(CommitStateUnknownError, match="whether tag was created is unknown"):
        create_record(store, PATH, b"mine", "tag")
    assert bytes(store.inner.read(PATH)) == b"mine"


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps], ids=["in one step", "in two"])
def test_a_change_whose_reply_was_lost_is_recognised(kind):
    store = _changing(kind, Fault.LOST_REPLY)
    replace_record(store, PATH, b"old", b"new", "tag")
    assert bytes(store.inner.read(PATH)) == b"new"


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps], ids=["in one step", "in two"])
@pytest.mark.parametrize("fault", [Fault.UNKNOWN_BEFORE, Fault.ARRIVES_LATER])
def test_a_change_that_may_still_arrive_is_of_unknown_outcome(kind, fault: Fault):
    store = _changing(kind, fault)
    with pytest.raises(CommitStateUnknownError, match="whether tag was changed is unknown"):
        replace_record(store, PATH, b"old", b"new", "tag")


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps], ids=["in one step", "in two"])
def test_a_change_that_failed_is_reported_as_such(kind):
    store = _changing(kind, Fault.ERROR_BEFORE)
    with pytest.raises(StorageError):
        replace_record(store, PATH, b"old", b"new", "tag")
    assert bytes(store.inner.read(PATH)) == b"old"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault.LOST_REPLY, None),
        (Fault.UNKNOWN_BEFORE, CommitStateUnknownError),
        (Fault.ERROR_BEFORE, StorageError),
    ],
    ids=["lost reply", "unknown", "failed"],
)
def test_a_deletion_is_looked_after_when_its_reply_was_lost(fault: Fault, told: type | None):
    store = _store(on("delete", "", fault))
    store.inner.write(PATH, b"1")
    if told is None:
        assert delete_record(store, PATH, "tag") is True
    else:
        with pytest.raises(told):
            delete_record(store, PATH, "tag")
    assert store.inner.exists(PATH) is (told is not None)


class _Unsynced(MemoryStore):
    """A store whose writes land and are not confirmed by the disk."""

    def write_if_absent(self, path, data) -> None:
        super().write_if_absent(path, data)
        raise StorageError(path, "not confirmed", "unsynced")

    def replace(self, path, expected, data) -> bool:
        super().replace(path, expected, data)
        raise StorageError(path, "not confirmed", "unsynced")


class _LosesReplies(MemoryStore):
    """A store that says that a name is taken by what it has just written; cannot sync folders."""

    def write_if_absent(self, path, data) -> None:
        super().write_if_absent(path, data)
        raise ObjectExistsError(path)

    def sync_folder(self, folder) -> None:
        raise StorageError(folder, "not confirmed")


def test_a_record_that_the_disk_did_not_confirm_is_reported_as_such():
    store = _Unsynced(uuid.uuid4().hex)
    with pytest.raises(CommitStateUnknownError, match="created and everybody sees it"):
        create_record(store, PATH, b"mine", "tag")
    with pytest.raises(CommitStateUnknownError, match="changed and everybody sees it"):
        replace_record(store, PATH, b"mine", b"new", "tag")
    assert bytes(store.read(PATH)) == b"new"


def test_a_record_that_is_found_to_be_ours_is_synced():
    store = _LosesReplies(uuid.uuid4().hex)
    with pytest.raises(CommitStateUnknownError, match="everybody sees it"):
        create_record(store, PATH, b"mine", "tag")


ERROR = Fault.ERROR_BEFORE


def _plans(*plans):
    return lambda step: next(filter(None, (plan(step) for plan in plans)), None)


def _changing(kind, fault: Fault) -> FaultyStore:
    method = "write" if kind is _InSteps else "replace"
    store = _FaultyInSteps if kind is _InSteps else FaultyStore
    made = store(kind(uuid.uuid4().hex), on(method, "", fault))
    made.inner.write(PATH, b"old")
    return made


class _FaultyInSteps(FaultyStore):
    replace = None


def test_a_changed_record_is_not_written_over():
    store = _InSteps(uuid.uuid4().hex)
    store.write(PATH, b"changed")
    with pytest.raises(RefConflictError):
        replace_record(store, PATH, b"old", b"new", "tag")
    assert bytes(store.read(PATH)) == b"changed"


def test_an_unknown_outcome_gives_its_reason_where_there_is_one():
    text = "whether tag 't' was created is unknown{}: look at it before doing the change again"
    unknown = ref_writer._unknown
    assert str(unknown("tag 't'", "created", None)) == text.format("")
    assert str(unknown("tag 't'", "created", LanceError("why"))) == text.format(" (why)")


def test_the_folder_of_a_record_is_made_durable(monkeypatch: pytest.MonkeyPatch):
    synced = []
    monkeypatch.setattr(ref_writer, "sync_folder", lambda _root, folder: synced.append(folder))
    store = _store()
    create_record(store, PATH, b"mine", "tag 'v1'")
    assert delete_record(store, PATH, "tag 'v1'")
    assert synced[-1] == "_refs/tags"
    assert set(synced) == {"_refs/tags"}


MAIN_1 = Target(None, 1)


def _table(versions: int = 3) -> Table:
    table = Table()
    table.create()
    for version in range(1, versions):
        table.append(version)
    return table


def _tags(table: Table) -> TagWriter:
    return TagWriter(
        table.root, lambda branch: CommitPlace.of(table.root, branch), table.environment
    )


def test_a_tag_is_written_as_pylance_writes_it():
    table = _table()
    _tags(table).create("v1", Target(None, 2))
    record = json.loads(bytes(table.inner.read("_refs/tags/v1.json")))
    size = table.inner.size("_versions/18446744073709551613.manifest")
    times = record.pop("createdAt"), record.pop("updatedAt")
    assert times[0] == times[1]
    assert times[0].startswith("2023-11-14T22:13:20.")
    assert len(times[0]) == len("2023-11-14T22:13:20.000000000Z")
    assert record == {"branch": None, "version": 2, "manifestSize": size, "metadata": {}}


def test_none_is_the_latest_version():
    table = _table(3)
    assert _tags(table).create("now", Target(None, None)).version == 3


def test_a_name_is_taken_once():
    table = _table()
    _tags(table).create("v1", MAIN_1)
    with pytest.raises(RefConflictError, match="tag 'v1' already exists"):
        _tags(table).create("v1", Target(None, 2))
    assert refs.read_tag(table.inner, "v1").version == 1


def test_moving_a_tag_keeps_its_creation_time_and_metadata():
    table = _table()
    tags = _tags(table)
    created = tags.create("v1", MAIN_1)
    tags.replace_metadata("v1", {"who": "Zoë"})
    tags.update("v1", Target(None, 3))
    found = refs.read_tag(table.inner, "v1")
    assert (found.version, dict(found.metadata)) == (3, {"who": "Zoë"})
    assert found.created_at_ns == created.created_at_ns >= START_NS
    assert found.updated_at_ns > created.updated_at_ns


def test_new_metadata_leaves_the_times():
    table = _table()
    tags = _tags(table)
    created = tags.create("v1", MAIN_1)
    tags.replace_metadata("v1", {"a": "b"})
    tags.replace_metadata("v1", {})
    assert refs.read_tag(table.inner, "v1") == created


@pytest.mark.parametrize("act", ["update", "delete"])
def test_a_tag_is_changed_only_where_it_was_seen(act: str):
    table = _table()
    tags = _tags(table)
    tags.create("v1", Target(None, 1))
    change = (lambda *seen: tags.update("v1", Target(None, 3), *seen)) if act == "update" else (
        lambda *seen: tags.delete("v1", *seen)
    )  # fmt: skip
    with pytest.raises(RefConflictError, match=r"moved meanwhile: it is at main:1, not at main:2"):
        change(Target(None, 2))
    assert refs.read_tag(table.inner, "v1").version == 1
    change(Target(None, 1))
    gone = "v1" not in refs.tag_names(table.inner)
    assert gone == (act == "delete")


@pytest.mark.parametrize("act", ["update", "delete", "replace_metadata"])
def test_a_tag_that_is_not_there_is_reported(act: str):
    table = _table()
    tags = _tags(table)
    tags.create("other", MAIN_1)
    more = {"update": (MAIN_1,), "replace_metadata": ({},)}.get(act, ())
    with pytest.raises(RefNotFoundError, match="other"):
        getattr(tags, act)("v1", *more)


@pytest.mark.parametrize("version", [4, 0, 99, 2**63 + 5])
def test_a_version_that_is_not_there_is_reported_and_nothing_is_changed(version: int):
    table = _table()
    tags = _tags(table)
    with pytest.raises(VersionNotFoundError):
        tags.create("v1", Target(None, version))
    tags.create("v1", MAIN_1)
    with pytest.raises(VersionNotFoundError):
        tags.update("v1", Target(None, version))
    assert refs.read_tag(table.inner, "v1").version == 1


@pytest.mark.parametrize("name", ["", "a/b", ".a", "a.", "a..b", "x.lock", "a b", "../x", "a\\b"])
def test_names_that_break_the_rules_are_refused(name: str):
    table = _table()
    for act in (lambda t: t.create(name, MAIN_1), lambda t: t.delete(name)):
        with pytest.raises(InvalidRefError):
            act(_tags(table))
    assert table.inner.list_recursive("_refs") == []


def test_metadata_is_text():
    table = _table()
    _tags(table).create("v1", MAIN_1)
    with pytest.raises(InvalidInputError):
        _tags(table).replace_metadata("v1", {"a": 1})


def test_of_16_creators_one_wins_and_nobody_is_overwritten():
    table = _table()
    won, lost = [], []

    def race(version: int) -> None:
        try:
            TagWriter(table.inner, lambda b: CommitPlace.of(table.inner, b)).create(
                "v1", Target(None, version)
            )
            won.append(version)
        except RefConflictError:
            lost.append(version)

    threads = [threading.Thread(target=race, args=(1 + n % 3,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 15)
    assert refs.read_tag(table.inner, "v1").version == won[0]


def test_a_change_by_another_process_in_between_is_not_overwritten():
    table = _table()
    tags = _tags(table)
    tags.create("v1", MAIN_1)
    other = TagWriter(table.inner, lambda b: CommitPlace.of(table.inner, b), table.environment)
    acts = [lambda: other.update("v1", Target(None, 2))]
    table.root.world.plan = lambda step: (
        acts.pop()() and None if step.method == "replace" and acts else None
    )
    with pytest.raises(RefConflictError, match="changed by another process"):
        tags.update("v1", Target(None, 3))
    assert refs.read_tag(table.inner, "v1").version == 2


def test_order_is_by_version_then_name():
    table = _table()
    tags = _tags(table)
    for name, version in (("b", 2), ("a", 3), ("c", 3), ("d", 1), ("e", 3)):
        tags.create(name, Target(None, version))
        BranchWriter(tags.root, tags.place_of, tags.environment).create(name, Target(None, version))
    found = refs.list_tags(table.inner)
    names = [name for name, _ in ordered_tags(found)]
    assert names == [name for name, _ in ordered_tags(found, "desc")] == ["a", "c", "e", "b", "d"]
    assert [name for name, _ in ordered_tags(found, "asc")] == ["d", "b", "a", "c", "e"]
    branches = refs.list_branches(table.inner)
    assert [name for name, _ in ordered_branches(branches)] == names
    with pytest.raises(InvalidInputError):
        ordered_tags(found, "upwards")
