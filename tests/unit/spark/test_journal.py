"""Work that waits for its commit: kept for the user alone, without secrets, never as a pickle."""

from __future__ import annotations

import json
import os
import pickle
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitStateUnknownError, InvalidInputError, StorageError
from lance_nb.spark import journal
from lance_nb.spark.plan import Label
from tests.unit.spark.conftest import at_commit, rows

CANARY = "TOPSECRET"
SECRETS = {"key": f"{CANARY}-1", "secret": f"{CANARY}-2", "region": "here"}


@pytest.fixture
def folder(cache: Path) -> Path:
    return cache / "lance_nb" / "jobs"


def kept(dataset: LanceDataset, predicate: str = "id < 5") -> str:
    """Keep a deletion that is not committed; return its id."""
    plan = spark.plan_delete(dataset, predicate)
    assert journal.keep(plan, [one.run() for one in plan.tasks], Label("why"))
    return plan.operation_id


def only_entry() -> journal.Entry:
    (entry,) = spark.unfinished()
    return entry


# --- what is written ------------------------------------------------------------------------------


def test_an_entry_is_text_for_the_user_alone(dataset: LanceDataset, folder: Path) -> None:
    operation_id = kept(dataset)
    (path,) = folder.iterdir()
    assert path.name == f"{operation_id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    head, body = path.read_text().split("\n")
    assert json.loads(head)["verb"] == "delete"
    assert json.loads(body)


def test_no_secret_is_kept(dataset: LanceDataset, folder: Path, tmp_path: Path) -> None:
    secret = lance_nb.dataset(dataset.uri, storage_options=SECRETS)
    plan = spark.plan_clone(secret, str(tmp_path / "copy.lance"), {"token": f"{CANARY}-3"})
    detail = f"to https://me:{CANARY}@host/x"
    journal.keep(replace(plan, detail=detail), [one.run() for one in plan.tasks], Label())
    kept(secret)
    for path in folder.iterdir():
        assert CANARY not in path.read_text()
    assert CANARY not in "".join(map(str, spark.unfinished()))


def test_a_dataset_whose_options_are_secret_is_asked_for_them(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation_id = kept(lance_nb.dataset(dataset.uri, storage_options=SECRETS))
    with pytest.raises(InvalidInputError) as caught:
        spark.resume(operation_id)
    said = str(caught.value)
    for piece in (
        "storage option 'key'", "storage option 'secret'", "FSSPEC_FILE_SECRET",
        f'lance_nb.spark.resume("{operation_id}")'.replace('"', "'"), "storage_options={...}",
    ):  # fmt: skip
        assert piece in said.replace('"', "'"), piece
    assert "region" not in said
    assert only_entry().operation_id == operation_id

    with pytest.raises(InvalidInputError, match="'secret'"):
        spark.resume(operation_id, storage_options={"key": "again"})
    monkeypatch.setenv("FSSPEC_FILE_SECRET", "again")
    made = spark.resume(operation_id, storage_options={"key": "again"})
    assert made.count_rows() == 95
    assert spark.unfinished() == []


def test_a_clone_is_asked_for_the_options_of_its_copy(
    dataset: LanceDataset, tmp_path: Path
) -> None:
    plan = spark.plan_clone(dataset, str(tmp_path / "copy.lance"), {"token": CANARY})
    journal.keep(plan, [one.run() for one in plan.tasks], Label())
    with pytest.raises(InvalidInputError, match=r"'token'.*target_storage_options"):
        spark.resume(plan.operation_id, storage_options={})
    made = spark.resume(plan.operation_id, target_storage_options={"token": "again"})
    assert made.uri.endswith("copy.lance")
    assert made.count_rows() == 100


# --- what is not sound ----------------------------------------------------------------------------


def test_a_pickle_is_no_entry_and_never_read(
    dataset: LanceDataset, folder: Path, tmp_path: Path
) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "harm"),)

    good = kept(dataset)
    for name in ("0-old.pickle", "1-old.json", "2-old.tasks"):
        (folder / name).write_bytes(pickle.dumps(Harmful()))
    for operation_id in ("0-old", "1-old", "2-old"):
        with pytest.raises(InvalidInputError, match=r"no unfinished operation|it is damaged"):
            spark.resume(operation_id)
        spark.forget(operation_id)
    assert not (tmp_path / "harm").exists()
    assert only_entry().operation_id == good
    assert spark.resume(good).count_rows() == 95


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_another_operation(path: Path) -> None:
    head, body = path.read_bytes().split(b"\n")
    path.write_bytes(
        json.dumps({**json.loads(head), "operation_id": "another"}).encode() + b"\n" + body
    )


def of_a_later_format(path: Path) -> None:
    head, body = path.read_bytes().split(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), "format": 4}).encode() + b"\n" + body)


def for_all(path: Path) -> None:
    path.chmod(0o666)


def as_link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES = {
    truncate: "it is damaged",
    flip: "it is damaged",
    empty: "it is damaged",
    of_another_operation: "it is damaged",
    of_a_later_format: "it has format 4, and this release writes 3",
    for_all: "other users can write to it",
    as_link: "symbolic link",
    as_fifo: "not a regular file",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_a_damaged_entry_is_listed_with_the_reason_and_hides_no_other(
    dataset: LanceDataset, folder: Path, damage: Callable[[Path], None]
) -> None:
    bad, good = kept(dataset), kept(dataset, "id >= 95")
    damage(folder / f"{bad}.json")
    by_id = {one.operation_id: one for one in spark.unfinished()}
    assert by_id.keys() == {bad, good}
    assert DAMAGES[damage] in str(by_id[bad])
    assert "Check the history" in str(by_id[bad])
    with pytest.raises(InvalidInputError, match="cannot be resumed"):
        spark.resume(bad)
    assert spark.resume(good).count_rows() == 95
    spark.forget(bad)
    assert spark.unfinished() == []


def test_what_this_release_cannot_make_again_is_an_error_and_stays(
    dataset: LanceDataset, folder: Path
) -> None:
    import hashlib

    operation_id = kept(dataset)
    path = folder / f"{operation_id}.json"
    head, body = path.read_bytes().split(b"\n")
    for changed in (
        body.replace(b'"DeletionPlan"', b'"DeletionPlan2"'),
        body.replace(b'"commit_edits"', b'"commit_more"'),
        body.replace(b'["verb","delete"],', b""),
        *(b'{"shared":[],"value":%s}' % value for value in (b"[1,2,3]", b"[]", b"7")),
        body[:-2] + b',{"is":"list","value":[]}]}',
        body.replace(operation_id.encode(), b"another-operation"),
    ):  # fmt: skip
        assert changed != body
        about = {**json.loads(head), "sha256": hashlib.sha256(changed).hexdigest()}
        path.write_bytes(json.dumps(about).encode() + b"\n" + changed)
        with pytest.raises(InvalidInputError):
            spark.resume(operation_id)
        assert lance_nb.dataset(dataset.uri).version == dataset.version
        assert only_entry().operation_id == operation_id


def test_other_files_in_the_folder_are_no_entries(dataset: LanceDataset, folder: Path) -> None:
    operation_id = kept(dataset)
    for name in ("notes.txt", "x y.json", ".json", f"{'x' * 80}.json", ".tmp-1", "x.json.bak"):
        (folder / name).write_bytes(b"{}")
    assert only_entry().operation_id == operation_id
    for name in ("../x", "", "x/y", "x.y", "é", "x" * 65):
        for call in (spark.resume, spark.forget):
            with pytest.raises(InvalidInputError, match="is not an operation id"):
                call(name)


# --- the folder -----------------------------------------------------------------------------------


def test_a_folder_of_somebody_else_stops_the_work_before_it_begins(
    dataset: LanceDataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    ran = []
    told = {"progress": ran.append}
    for call in (
        lambda: spark.delete(dataset, "id < 5", engine="local", **told),
        lambda: spark.upsert(dataset, rows(0, 1), "id", engine="local"),
        spark.unfinished,
    ):
        with pytest.raises(StorageError, match=r"belongs to user .* XDG_CACHE_HOME"):
            call()
    assert all(one.num_tasks == 0 for one in ran)
    assert lance_nb.dataset(dataset.uri).version == dataset.version


def test_work_that_commits_nothing_needs_no_folder(
    dataset: LanceDataset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_bytes(b"a file")
    assert spark.count(dataset, "id < 5", engine="local") == 5
    with pytest.raises(StorageError):
        spark.delete(dataset, "id < 5", engine="local")


def test_a_relative_cache_is_ignored(
    dataset: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    operation_id = kept(dataset)
    path = tmp_path / "home" / ".cache" / "lance_nb" / "jobs" / f"{operation_id}.json"
    assert path.is_file()
    assert not (tmp_path / "relative").exists()


# --- size -----------------------------------------------------------------------------------------


def test_results_that_are_too_large_are_committed_and_not_kept(
    dataset: LanceDataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ENTRY_BYTES_MAX", 10)
    assert spark.delete(dataset, "id < 5", engine="local").count_rows() == 95
    assert list(folder.iterdir()) == []

    lost = CommitStateUnknownError("the answer was lost")
    with at_commit(commits=False, error=lost), pytest.raises(CommitStateUnknownError):
        spark.delete(lance_nb.dataset(dataset.uri), "id < 50", engine="local")
    (note,) = lost.__notes__
    assert "too large to be kept" in note
    assert "resume" not in note
    assert spark.unfinished() == []


def test_an_entry_that_grew_is_not_read(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation_id = kept(dataset)
    monkeypatch.setattr(journal, "ENTRY_BYTES_MAX", 100)
    assert "larger than 100 bytes" in str(only_entry())
    spark.forget(operation_id)
    assert spark.unfinished() == []
