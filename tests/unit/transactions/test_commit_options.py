from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.commit_options import (
    MAX_RETRIES,
    TIMEOUT_S,
    CommitOptions,
    CommitPlace,
)


@pytest.mark.parametrize(
    "bad", [{"max_retries": -1}, {"timeout_s": 0}, {"timeout_s": -1.0}, {"commit_lock": "lock"}]
)
def test_options_that_mean_nothing_are_refused(bad):
    with pytest.raises(InvalidInputError):
        CommitOptions(**bad)


def test_a_branch_has_its_own_home_and_slots():
    root = MemoryStore(uuid.uuid4().hex)
    main, branch = CommitPlace.of(root), CommitPlace.of(root, "fix/one")
    assert main.home.uri == main.slots.home.uri == root.uri
    assert branch.home.uri == branch.slots.home.uri == f"{root.uri}/tree/fix/one"


def test_secrets_are_not_shown():
    place = CommitPlace.of(MemoryStore("x"), storage_options={"secret": "TOPSECRET"})
    assert "TOPSECRET" not in repr(place)


def test_a_commit_is_part_of_the_history_unless_it_is_asked_otherwise():
    options = CommitOptions()
    assert (options.max_retries, options.timeout_s) == (MAX_RETRIES, TIMEOUT_S) == (20, 1800.0)
    assert (options.detached, options.is_exact, options.enable_v2_manifest_paths) == (
        False, False, True,
    )  # fmt: skip
