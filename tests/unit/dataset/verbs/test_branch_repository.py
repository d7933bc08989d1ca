"""Versions of every branch, and how far the reading of them is."""

from __future__ import annotations

import pytest

from lance_nb.dataset.verbs.branch_merging import SessionRepository
from lance_nb.dataset.verbs.progress import VersionReadProgress
from lance_nb.errors import VersionNotFoundError


def test_versions_and_transactions_are_read_and_counted(make, rows) -> None:
    made = make()
    made.create_branch("dev").insert(rows)
    seen: list[tuple[int, int]] = []
    told = VersionReadProgress(lambda done, total: seen.append((done, total)))
    repository = SessionRepository(made.opened[0], told)
    assert list(repository.branches()) == ["dev"]
    assert repository.load("dev", None).version == 2
    assert [one.operation.arm for one in repository.transactions(None, [1])] == ["overwrite"]
    told.stop()
    assert repository.load(None, 1).branch is None
    assert seen == [(1, 1), (2, 2)]
    assert repository.home_uri("dev").endswith("/tree/dev")


def test_a_version_that_is_not_there_is_named(make) -> None:
    repository = SessionRepository(make().opened[0])
    with pytest.raises(VersionNotFoundError):
        repository.load(None, 7)
