from __future__ import annotations

import pytest

from lance_nb.session.session import Session
from lance_nb.table import fragment_group
from lance_nb.table.refs import Target
from tests.golden.opening import WatchedStore, open_over


def test_each_branch_has_one_log(stores):
    session = Session(stores["history"])
    assert session.log(None) is session.log(None)
    assert session.log("side") is not session.log(None)
    assert session.log("side").numbers() == [2, 3]


@pytest.fixture
def _alone(monkeypatch):
    """Small fragments that are read together keep no file open."""
    monkeypatch.setattr(fragment_group, "FRAGMENT_ROWS_MAX", 0)


@pytest.mark.usefixtures("_alone")
def test_versions_share_what_was_read(stores):
    store = WatchedStore(stores["history"])
    dataset = open_over(store, 2)
    dataset.to_table()
    store.forget()
    dataset.checkout_version(1).to_table()
    assert not [path for path in store.reads if path.startswith("data/")]


@pytest.mark.usefixtures("_alone")
def test_files_of_a_parent_branch_are_shared_with_it(stores):
    store = WatchedStore(stores["history"])
    dataset = open_over(store, 2)
    dataset.to_table()
    store.forget()
    dataset.checkout_version(("side", 2)).to_table()
    assert not [path for path in store.reads if path.startswith("data/")]


def test_a_target_without_version_is_the_latest(stores):
    session = Session(stores["history"])
    assert session.load(Target(None, None)).version == 14
    assert session.load(Target("team/deep", None)).version == 4


def test_a_session_shows_no_storage_options():
    session = Session(WatchedStore(None), storage_options={"secret": "TOPSECRET"})
    assert "TOPSECRET" not in repr(session)
