"""Every call to a local disk fails once, before or after it did its work: the reply stays true.

A cell makes one change while one call of the system reports an error. What was told must be so: a
change that was acknowledged is in the dataset, once; one that failed is not in it; of one that is
unknown, looking tells the truth. Then the change is done (again) if it is not there, and is there
once. pylance opens the dataset in every end state.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CommitStateUnknownError, LanceError
from lance_nb.storage.registry import open_store
from lance_nb.table import refs
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.resume import find_transaction
from tests.support.faulty_system import failing_at
from tests.support.requirements import require_pylance

pytestmark = [pytest.mark.slow, pytest.mark.interop]
CODES = [
    getattr(errno, name) for name in ("EIO", "ENOSPC", "EINTR", "ESTALE", "ETIMEDOUT", "EACCES")
]
NAMING = ("link", "rename", "fsync", "unlink")  # each error at these calls, EIO at the others
State = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the dataset in a folder, and where what it changes is looked at.

    ``between``: errors that leave it half done, as readers can see, for a repetition to complete.
    """

    act: Callable[[str], Any]
    prepare: Callable[[str], Any] = lambda _: None
    at: str = ""
    between: tuple[str, ...] = ()


def rows(first: int) -> pa.Table:
    return pa.table({"id": range(first, first + 10)})


def opened(place: str) -> Any:
    return lance_nb.dataset(place)


def with_tag(place: str) -> None:
    opened(place).tags.create("kept", 1)


def with_branch(place: str) -> None:
    opened(place).create_branch("dev", 2).insert(rows(500))


CHANGES = {
    "create": Change(lambda place: lance_nb.write_dataset(rows(0), f"{place}/new"), at="/new"),
    "append": Change(lambda place: opened(place).insert(rows(100))),
    "append of three files": Change(
        lambda place: lance_nb.write_dataset(rows(100), place, mode="append", max_rows_per_file=4)
    ),
    "overwrite": Change(lambda place: opened(place).insert(rows(100), mode="overwrite")),
    "delete": Change(lambda place: opened(place).delete("id % 3 = 0")),
    "update": Change(lambda place: opened(place).update({"id": "id + 1000"}, where="id < 5")),
    "restore": Change(lambda place: opened(place).checkout_version(1).restore()),
    "tag created": Change(lambda place: opened(place).tags.create("kept", 2)),
    "tag moved": Change(lambda place: opened(place).tags.update("kept", 2), with_tag),
    "tag described": Change(
        lambda place: opened(place).tags.replace_metadata("kept", {"k": "v"}), with_tag
    ),
    "tag deleted": Change(lambda place: opened(place).tags.delete("kept"), with_tag),
    "branch created": Change(
        lambda place: opened(place).create_branch("dev", 2), between=("unknown",)
    ),
    "append to a branch": Change(
        lambda place: lance_nb.dataset(place, ("dev", None)).insert(rows(100)), with_branch
    ),
    "branch deleted": Change(
        lambda place: opened(place).branches.delete("dev"), with_branch, between=("failed",)
    ),
    "shallow clone": Change(
        lambda place: opened(place).shallow_clone(f"{place}/clone", 2), at="/clone"
    ),
    "deep clone": Change(lambda place: opened(place).deep_clone(f"{place}/clone", 2), at="/clone"),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("source") / "t.lance"
    lance_nb.write_dataset(rows(0), place)
    lance_nb.dataset(place).insert(rows(50))
    return place


def state(place: str) -> State:
    """What a reader sees: rows and number of versions of each branch, tags."""
    root = open_store(place)
    if not root.list_names("_versions"):
        return ("nothing",)
    main = lance_nb.dataset(place, allow_bases=[str(Path(place).parent)])
    branches = {}
    for name in refs.branch_names(root):
        if root.child(f"tree/{name}").list_names("_versions"):
            branches[name] = _line(main.checkout_version((name, None)))
        else:
            branches[name] = "unfinished"
    tags = {name: (one["version"], one["metadata"]) for name, one in main.tags.list().items()}
    return _line(main), branches, tags


def _line(dataset: Any) -> tuple[Any, ...]:
    return dataset.version, len(dataset.versions()), dataset.to_table()["id"].to_pylist()


def judged(place: str, found: State) -> None:
    """Let pylance open what is there and compare its rows."""
    lance = require_pylance()
    if found == ("nothing",):
        return
    main, branches, tags = found
    theirs = lance.dataset(place)
    assert theirs.to_table()["id"].to_pylist() == main[2]
    assert set(theirs.tags.list()) == set(tags)
    assert set(theirs.branches.list()) == set(branches)
    for name, one in branches.items():
        if one != "unfinished":
            assert theirs.checkout_version((name, None)).to_table()["id"].to_pylist() == one[2]


def told(place: str, change: Change) -> tuple[str, LanceError | None]:
    try:
        change.act(place)
    except CommitStateUnknownError as error:
        return "unknown", error
    except LanceError as error:
        return "failed", error
    return "done", None


def undisturbed(
    change: Change, source: Path, place: str, patch: pytest.MonkeyPatch
) -> tuple[list[str], State, State]:
    shutil.copytree(source, place)
    change.prepare(place)
    before = state(place + change.at)
    with failing_at(patch, 0, errno.EIO, after=False) as system:
        change.act(place)
    return system.calls, before, state(place + change.at)


def cells_of(calls: list[str]) -> Iterator[tuple[int, int, bool]]:
    for number, name in enumerate(calls, 1):
        for code in CODES if name in NAMING else CODES[:1]:
            for after in (False, True):
                yield number, code, after


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_told_of_a_change_is_true(
    name: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = CHANGES[name]
    calls, before, after = undisturbed(change, source, f"{tmp_path}/sound", monkeypatch)
    assert before != after
    seen: set[str] = set()
    ends: dict[str, int] = {}
    for number, code, work_first in cells_of(calls):
        place = f"{tmp_path}/{number}-{code}-{work_first}"
        shutil.copytree(source, place)
        change.prepare(place)
        with failing_at(monkeypatch, number, code, after=work_first):
            ended, error = told(place, change)
        moment = "after" if work_first else "before"
        cell = f"{name}, call {number} ({calls[number - 1]}), {errno.errorcode[code]} {moment}"
        found = state(place + change.at)
        ends[ended] = ends.get(ended, 0) + 1
        if ended == "done":
            assert found == after, f"{cell}: acknowledged, readers see {found}"
        elif ended in change.between and found not in (before, after):
            assert found[0] == before[0], f"{cell}: {ended} ({error}), readers see {found}"
        elif ended == "failed":
            assert found == before, f"{cell}: {error!r}, readers see {found}"
        else:
            assert found in (before, after), f"{cell}: {error!r}, readers see {found}"
            check_uuid(place + change.at, error, found == after)
        if str(found) not in seen:
            seen.add(str(found))
            judged(place + change.at, found)
        if found != after:
            change.act(place)
            assert state(place + change.at) == after, f"{cell}: {ended}, then repeated"
        shutil.rmtree(place)
    print(f"{name}: {len(calls)} calls, {ends}, {len(seen)} end states")


def check_uuid(place: str, error: LanceError | None, is_there: bool) -> None:
    """Look for the transaction that an unknown outcome names, in every branch."""
    assert isinstance(error, CommitStateUnknownError)
    if not error.transaction_uuid:
        return  # of a tag, or a branch's record
    root = open_store(place)
    found = [
        find_transaction(CommitPlace.of(root, branch), error.transaction_uuid)
        for branch in (None, *refs.branch_names(root))
    ]
    assert any(one == error.version for one in found if one is not None) is is_there
