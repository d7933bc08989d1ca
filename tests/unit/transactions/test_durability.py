"""On a local disk, what a version needs is on the disk before the version has its name."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CommitStateUnknownError, StorageError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.storage.local import LocalStore
from lance_nb.transactions.commit import commit, find_transaction
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.deletion_files import write_deletion_file
from tests.support.committing import Table, environment


class _Disk:
    """Records what the system is asked to do: sync, link, rename, by folder and kind of file."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        self.log: list[str] = []
        self._root = root
        for name in ("fsync", "link", "rename"):
            patch.setattr(os, name, self._recorded(name, getattr(os, name)))

    def _recorded(self, name: str, act):
        def call(*arguments, **options):
            target = arguments[-1]
            opened = target if name == "fsync" else options["dst_dir_fd"]
            path = Path(f"/proc/self/fd/{opened}").readlink()
            if name != "fsync":
                path /= target
            found = os.path.relpath(path, self._root)
            kind = "folder" if path.is_dir() else "file"
            self.log.append(f"{name} {kind} {found.split('/')[0]}")
            return act(*arguments, **options)

        return call


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(inner=LocalStore(str(tmp_path)))
    made.create()
    return made


def test_a_manifest_is_synced_before_its_link_and_its_folder_after(table, tmp_path, monkeypatch):
    disk = _Disk(monkeypatch, tmp_path)
    commit(CommitPlace.of(table.inner), table.appending(1), table.options())
    assert disk.log == ["fsync file _versions", "link file _versions", "fsync folder _versions"]


def test_files_and_their_folders_are_synced_before_the_link_of_their_version(tmp_path, monkeypatch):
    rows = pa.table({"id": range(10)})
    lance_nb.write_dataset(rows, tmp_path, max_rows_per_file=4)
    disk = _Disk(monkeypatch, tmp_path)
    made = lance_nb.write_dataset(rows, tmp_path, mode="append", max_rows_per_file=4)
    linked = disk.log.index("link file _versions")
    assert disk.log[:linked].count("fsync file data") == 3
    assert disk.log[:linked].count("fsync folder data") == 3
    assert disk.log[linked:] == ["link file _versions", "fsync folder _versions"]
    disk.log.clear()
    made.delete("id % 2 = 0")
    linked = disk.log.index("link file _versions")
    assert disk.log[:linked].count("fsync file _deletions") == 6
    assert disk.log[:linked].count("fsync folder _deletions") == 6
    assert disk.log[linked:] == ["link file _versions", "fsync folder _versions"]


def test_a_deletion_file_is_on_the_disk_when_it_is_handed_out(table, tmp_path, monkeypatch):
    disk = _Disk(monkeypatch, tmp_path)
    write_deletion_file(table.inner, 0, 1, DeletionVector.of([1]), environment=environment())
    assert disk.log == [
        "fsync folder .",  # _deletions is new
        "fsync file _deletions",
        "rename file _deletions",
        "fsync folder _deletions",
    ]


def test_a_folder_that_cannot_be_synced_after_the_link_leaves_our_own_version(
    table, tmp_path, monkeypatch
):
    """The version is there and ours, and not durable: committing again must not make a second."""
    real = os.fsync

    def failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path / "_versions":
            raise OSError(5, "Input/output error")
        real(descriptor)

    transaction = table.appending(1)
    place = CommitPlace.of(table.inner)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        for _ in range(2):  # it is asked for again, and again not confirmed
            with pytest.raises(CommitStateUnknownError, match="every reader sees it") as caught:
                commit(place, transaction, table.options())
            assert (caught.value.transaction_uuid, caught.value.version) == (transaction.uuid, 2)
    assert find_transaction(place, transaction.uuid) == 2
    assert commit(place, transaction, table.options()).version == 2
    assert len(list((tmp_path / "_versions").glob("*.manifest"))) == 2
    assert not list((tmp_path / "_versions").glob(".tmp-*"))


@pytest.mark.parametrize("code", ["EINVAL", "ENOSYS", "EOPNOTSUPP"])
def test_a_file_system_that_cannot_sync_folders_takes_commits(table, tmp_path, monkeypatch, code):
    real = os.fsync

    def unable(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(getattr(errno, code), "not for folders")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", unable)
    assert commit(CommitPlace.of(table.inner), table.appending(1), table.options()).version == 2


@pytest.mark.parametrize("code", ["EIO", "ENOSPC", "EINTR", "ESTALE", "ETIMEDOUT", "EACCES"])
def test_a_link_whose_reply_was_lost_is_one_version(table, tmp_path, monkeypatch, code):
    real = os.link

    def lost(source: str, target: str, **where: Any) -> None:
        real(source, target, **where)
        raise OSError(getattr(errno, code), "lost")

    monkeypatch.setattr(os, "link", lost)
    assert commit(CommitPlace.of(table.inner), table.appending(1), table.options()).version == 2
    assert len(list((tmp_path / "_versions").glob("*.manifest"))) == 2


def _removals(patch: pytest.MonkeyPatch, root: Path) -> list[str]:
    """Record what is removed and which folders are synced, in order, as paths below the root."""
    log: list[str] = []
    unlink, sync = os.unlink, os.fsync

    def removing(path: str, *, dir_fd: int | None = None) -> None:
        folder = Path(path).parent if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink()
        log.append(f"unlink {os.path.relpath(folder, root)}")
        unlink(path, dir_fd=dir_fd)

    def syncing(descriptor: int) -> None:
        opened = Path(f"/proc/self/fd/{descriptor}").readlink()
        log.append(f"fsync {os.path.relpath(opened, root)}")
        sync(descriptor)

    patch.setattr(os, "unlink", removing)
    patch.setattr(os, "fsync", syncing)
    return log


def test_versions_of_a_branch_are_gone_for_good_before_its_files_and_its_record(
    tmp_path, monkeypatch
):
    dataset = lance_nb.write_dataset(pa.table({"id": range(10)}), tmp_path)
    dataset.create_branch("dev").insert(pa.table({"id": range(3)}))
    log = _removals(monkeypatch, tmp_path)
    dataset.branches.delete("dev")
    versions, data = "tree/dev/_versions", "tree/dev/data"
    synced = log.index(f"fsync {versions}")
    assert f"unlink {versions}" in log[:synced]
    assert f"unlink {versions}" not in log[synced:]
    assert f"unlink {data}" not in log[:synced]
    assert f"unlink {data}" in log[synced:]
    assert log[-2:] == ["unlink _refs/branches", "fsync _refs/branches"]


def test_a_deleted_tag_is_gone_for_good(tmp_path, monkeypatch):
    dataset = lance_nb.write_dataset(pa.table({"id": range(10)}), tmp_path)
    dataset.tags.create("kept", 1)
    log = _removals(monkeypatch, tmp_path)
    dataset.tags.delete("kept")
    assert log[-2:] == ["unlink _refs/tags", "fsync _refs/tags"]


def test_a_migration_that_the_disk_does_not_confirm_is_unknown_until_it_does(tmp_path, monkeypatch):
    """Every name is changed: told as failed, it would be taken for undone."""
    rows = pa.table({"id": range(10)})
    dataset = lance_nb.write_dataset(rows, tmp_path, enable_v2_manifest_paths=False)
    dataset.insert(rows)
    real = LocalStore.sync_folder

    def failing(store: LocalStore, folder: str) -> None:
        raise StorageError(folder, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "sync_folder", failing)
        for _ in range(2):  # a repetition has nothing to rename, and asks the disk again
            with pytest.raises(CommitStateUnknownError, match="has its V2 name and everybody sees"):
                dataset.migrate_manifest_paths_v2()
            assert {len(one.stem) for one in tmp_path.glob("_versions/*.manifest")} == {20}
    asked: list[str] = []
    monkeypatch.setattr(
        LocalStore, "sync_folder", lambda *said: (asked.append(said[1]), real(*said))
    )
    dataset.migrate_manifest_paths_v2()
    assert asked == ["_versions"]


def test_a_clean_up_deletes_the_record_of_checksums_that_a_killed_writer_began(tmp_path):
    rows = pa.table({"id": range(10)})
    dataset = lance_nb.write_dataset(rows, tmp_path, checksums=True)
    branch = dataset.create_branch("dev")
    branch.insert(rows)
    for folder in ("_checksums", "tree/dev/_checksums"):
        (tmp_path / folder / ".tmp-begun").write_bytes(b"half")
    for one in (dataset, branch):
        one.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert not list(tmp_path.rglob(".tmp*"))
    assert lance_nb.verify(tmp_path, checksums=True).ok


def test_what_a_repair_quarantines_is_gone_from_the_disk_when_it_returns(tmp_path, monkeypatch):
    """A damaged manifest that came back after a power failure was the newest version again."""
    lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path).delete("id = 1")
    newest = min((tmp_path / "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:9])
    plan = lance_nb.plan_repair(tmp_path, older_than=timedelta(0))
    disk = _Disk(monkeypatch, tmp_path)
    plan.run()
    assert disk.log[-2:] == ["fsync folder _quarantine", "fsync folder _versions"]
