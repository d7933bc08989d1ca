from __future__ import annotations

import dataclasses

import pytest

from lance_nb.dataset.session import Session
from lance_nb.table.refs import Target
from tests.golden.opening import WatchedStore


def test_a_snapshot_knows_its_version_and_branch(at):
    assert (at(5).version, at(5).branch) == (5, None)
    assert (at(("side", None)).version, at(("side", None)).branch) == (3, "side")


def test_a_snapshot_cannot_be_changed(at):
    with pytest.raises(dataclasses.FrozenInstanceError):
        at(5).branch = "other"


def test_versions_of_one_session_share_open_files(history):
    session = Session(WatchedStore(history))
    first, second = session.load(Target(None, 1)), session.load(Target(None, 2))
    assert first.files is second.files
    assert first.deletions is second.deletions
