"""Commits to Google Cloud Storage and Azure, by stand-ins for their fsspec drivers.

A stand-in keeps objects in memory and knows what gcsfs and adlfs know: ``pipe_file`` with
``mode="create"`` refuses an object that exists. Each of the three outcomes is brought about, and
the probe meets a server that ignores the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import lance_nb
from lance_nb.errors import CommitStateUnknownError, NotSupportedError, StorageError
from lance_nb.storage import conditional_put
from lance_nb.transactions import version_slots

ROWS = pa.table({"a": range(5)})
_NUMBERS = count()


class Cloud(MemoryFileSystem):
    """Objects of one test, and what happens around each exclusive creation of a manifest."""

    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs: list[str] = [""]  # noqa: RUF012
    cachable = False
    protocol = ("gs", "az")
    ignores_the_condition = False
    before: Callable[[str], None] | None = None
    after: Callable[[str], None] | None = None
    created: list[str] = []  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return (
            "/" + str(path).partition("://")[2].strip("/")
            if "://" in path
            else f"/{path.strip('/')}"
        )

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        is_manifest = mode == "create" and path.endswith(".manifest")
        if is_manifest and type(self).before is not None:
            type(self).before(path)
        if mode == "create" and not self.ignores_the_condition and self.exists(path):
            raise FileExistsError(path)
        super().pipe_file(path, value)
        if is_manifest:
            self.created.append(path)
            if type(self).after is not None:
                type(self).after(path)


@pytest.fixture(params=["gs", "az"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a dataset in a bucket (container) that nobody has used."""
    drivers = import_module("fsspec.registry")._registry
    monkeypatch.setitem(drivers, request.param, Cloud)
    monkeypatch.setattr(version_slots, "WAIT_S", 0.0)
    for name, value in (
        ("store", {}), ("pseudo_dirs", [""]), ("created", []), ("ignores_the_condition", False),
        ("before", None), ("after", None),
    ):  # fmt: skip
        monkeypatch.setattr(Cloud, name, value)
    conditional_put.forget_probes()
    yield f"{request.param}://bucket{next(_NUMBERS)}/table.lance"
    conditional_put.forget_probes()


def once(action: Callable[[str], None]) -> Callable[[str], None]:
    """Do something at the first call only."""
    calls = count()
    return lambda path: action(path) if next(calls) == 0 else None


def fails(error: Exception) -> Callable[[str], None]:
    def fail(_: str) -> None:
        raise error

    return fail


def versions(place: str) -> list[int]:
    return [one["version"] for one in lance_nb.dataset(place).versions()]


def test_each_version_is_one_exclusive_creation(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    after = lance_nb.write_dataset(ROWS, place, mode="append")
    assert (after.count_rows(), versions(place)) == (10, [1, 2])
    assert len(Cloud.created) == 2
    assert not any(conditional_put.PROBE_PREFIX in path for path in Cloud.store)
    after.delete("a = 3")
    after.tags.create("kept", 2)
    after.create_branch("dev").insert(ROWS)
    assert lance_nb.dataset(place, version=("dev", None)).count_rows() == 13


def test_a_version_that_another_took_is_met_and_followed(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    other = lance_nb.dataset(place)
    Cloud.before = staticmethod(once(lambda _: other.insert(ROWS)))
    mine = lance_nb.write_dataset(ROWS, place, mode="append")
    assert (mine.version, mine.count_rows(), versions(place)) == (3, 15, [1, 2, 3])


@pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError("late"), OSError("?")])
def test_a_lost_reply_is_found_out_by_reading_back(place: str, error: Exception) -> None:
    lance_nb.write_dataset(ROWS, place)
    Cloud.after = staticmethod(once(fails(error)))
    after = lance_nb.write_dataset(ROWS, place, mode="append")
    assert (after.version, after.count_rows(), versions(place)) == (2, 10, [1, 2])


def test_an_outcome_that_stays_unknown_is_said_to_be_and_nothing_is_deleted(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    Cloud.before = staticmethod(fails(TimeoutError("late")))
    with pytest.raises(CommitStateUnknownError):
        lance_nb.write_dataset(ROWS, place, mode="append")
    assert sum(path.endswith(".lance") for path in Cloud.store) == 2
    Cloud.before = None
    assert lance_nb.write_dataset(ROWS, place, mode="append").count_rows() == 10


def test_a_refusal_commits_nothing(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    Cloud.before = staticmethod(fails(PermissionError("no")))
    with pytest.raises(StorageError) as caught:
        lance_nb.write_dataset(ROWS, place, mode="append")
    assert caught.value.outcome == "failed"
    assert versions(place) == [1]


def test_a_server_that_ignores_the_condition_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cloud, "ignores_the_condition", True)
    with pytest.raises(NotSupportedError, match="external manifest store"):
        lance_nb.write_dataset(ROWS, place)
    assert Cloud.created == []
    with pytest.raises(lance_nb.DatasetNotFoundError):
        lance_nb.dataset(place)
