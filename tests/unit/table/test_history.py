from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_nb.errors import CorruptFileError, VersionNotFoundError
from lance_nb.table.history import VERSIONS_SCHEMA, VersionLog, versions_table
from tests.golden.copies import NAMES, copy_to_memory, edited_manifest, refs
from tests.golden.opening import WatchedStore

TAGS = {
    "first": {"branch": None, "version": 1},
    "also": {"branch": None, "version": 1},
    "elsewhere": {"branch": "side", "version": 1},
}
OPERATIONS = ["Overwrite", "Append", "Delete", "Append", "Delete", "Merge", "Project", "Project",
              "Update", "ReserveFragments", "Rewrite", "CreateIndex", "Append",
              "UpdateConfig"]  # fmt: skip


@pytest.fixture
def log(history):
    return VersionLog(history, None)


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_every_version_are_those_of_pylance(stores, name):
    for branch, said in refs(name)["versions"].items():
        store = stores[name] if branch == "main" else stores[name].child(f"tree/{branch}")
        log = VersionLog(store, None if branch == "main" else branch)
        found = [log.as_pylance(number) for number in log.numbers()]
        assert [{"version": one["version"], "metadata": one["metadata"]} for one in found] == said


def test_the_time_of_pylance_is_naive_and_local(log):
    info, entry = log.describe(3, {}), log.as_pylance(3)
    assert entry["timestamp"].tzinfo is None
    assert abs(entry["timestamp"].astimezone(UTC) - info.timestamp).total_seconds() < 2e-6
    assert info.timestamp.tzinfo is UTC
    assert info.timestamp < datetime.now(UTC)


def test_operations_are_reported(log):
    assert [log.describe(number, {}).operation for number in log.numbers()] == OPERATIONS
    assert log.describe(1, {}).message == "the first rows"
    assert log.describe(2, {}).message is None


def test_tags_of_the_same_branch_are_attached_sorted(log, history):
    assert log.describe(1, TAGS).tags == ("also", "first")
    assert log.describe(2, TAGS).tags == ()
    side = VersionLog(history.child("tree/side"), "side")
    assert side.describe(2, TAGS).tags == ()


def test_the_transaction_of_a_version_is_described(log):
    found = log.transaction(3)
    assert (found.operation, found.read_version) == ("Delete", 2)
    assert "id % 9" in found.description or "id % 9" in str(found.details)


def test_a_version_is_read_once_and_numbers_read_nothing(history):
    store = WatchedStore(history)
    log = VersionLog(store, None)
    assert log.numbers() == list(range(1, 15))
    assert log.latest() == 14
    assert not store.reads
    for _ in range(3):
        for number in log.numbers():
            log.describe(number, TAGS)
            log.as_pylance(number)
            log.transaction(number)
    assert set(store.reads.values()) == {1}
    assert len(store.reads) == 14


def test_a_transaction_before_the_tail_is_read_by_itself(history, monkeypatch):
    whole = VersionLog(history, None)
    monkeypatch.setattr("lance_nb.table.history.TAIL_BYTES", 64)
    store = WatchedStore(history)
    log = VersionLog(store, None)
    for number in log.numbers():
        assert log.transaction(number) == whole.transaction(number)
    assert max(store.reads.values()) <= 4


def without_inline(manifest):
    manifest.ClearField("transaction_section")
    manifest.ClearField("transaction_section_deprecated")


def changed(version, change):
    store = copy_to_memory("history")
    path = f"_versions/{2**64 - 1 - version:020d}.manifest"
    store.write(path, edited_manifest(bytes(store.read(path)), change))
    return store


def test_the_transaction_file_is_read_when_there_is_no_inline_copy(log):
    found = VersionLog(changed(3, without_inline), None).transaction(3)
    assert found == log.transaction(3)


def test_a_transaction_file_that_was_cleaned_up_leaves_the_version_whole():
    store = changed(3, without_inline)
    for info in store.list("_transactions"):
        store.delete(f"_transactions/{info.name}")
    log = VersionLog(store, None)
    assert log.transaction(3) is None
    assert log.describe(3, {}).operation is None
    assert log.describe(3, {}).num_rows == 66


def test_a_version_without_any_transaction_has_none():
    def change(manifest):
        without_inline(manifest)
        manifest.ClearField("transaction_file")

    assert VersionLog(changed(3, change), None).transaction(3) is None


def test_a_version_that_does_not_exist_is_refused(log):
    for read in (log.as_pylance, log.transaction, lambda number: log.describe(number, {})):
        with pytest.raises(VersionNotFoundError, match=r"version 99 .* available: 1-14"):
            read(99)


def test_a_version_that_appears_later_is_found():
    store = copy_to_memory("history")
    path = f"_versions/{2**64 - 1 - 14:020d}.manifest"
    data = bytes(store.read(path))
    store.delete(path)
    log = VersionLog(store, None)
    assert log.latest() == 13
    store.write(path, data)
    assert log.describe(14, {}).num_rows == 110
    assert log.latest() == 14


def test_a_damaged_manifest_is_named(history):
    store = copy_to_memory("history")
    store.write(f"_versions/{2**64 - 1 - 5:020d}.manifest", b"x" * 50)
    log = VersionLog(store, None)
    with pytest.raises(CorruptFileError, match=r"18446744073709551610.manifest"):
        log.describe(5, {})
    assert log.describe(4, {}).num_rows == 5126
    tags = {"x": {"branch": None, "version": 5}}
    info = log.describe(5, tags, tolerant=True)
    assert (info.version, info.num_rows, info.num_fragments) == (5, None, 0)
    assert (info.num_data_files, info.num_deletion_files, info.size_bytes) == (0, 0, 0)
    assert info.tags == ("x",)
    assert "18446744073709551610.manifest" in (info.error or "")


def test_row_counts_that_are_not_recorded_are_none():
    from tests.golden.copies import edited_fragment

    def change(manifest):
        for at, raw in enumerate(manifest.fragments):
            manifest.fragments[at] = edited_fragment(
                raw, lambda one: setattr(one, "physical_rows", 0)
            )

    log = VersionLog(changed(5, change), None)
    info = log.describe(5, {})
    assert (info.num_rows, info.num_deleted_rows) == (None, None)
    versions_table(log, {}).validate(full=True)


def test_versions_as_a_table(log):
    table = versions_table(log, TAGS)
    assert table.schema.equals(VERSIONS_SCHEMA)
    assert table["version"].to_pylist() == list(range(1, 15))
    assert table["operation"].to_pylist() == OPERATIONS
    assert table["tags"].to_pylist()[:2] == [["also", "first"], []]
    assert table["num_rows"].to_pylist()[:5] == [40, 70, 66, 5126, 107]


def test_a_transaction_that_cannot_be_read_is_raised_or_reported():
    store = changed(3, without_inline)
    for info in store.list("_transactions"):
        store.write(f"_transactions/{info.name}", b"\xff" * 9)
    log = VersionLog(store, None)
    with pytest.raises(CorruptFileError):
        log.describe(3, {})
    info = log.describe(3, {}, tolerant=True)
    assert (info.num_rows, info.operation) == (66, None)
    assert "_transactions/" in info.error
