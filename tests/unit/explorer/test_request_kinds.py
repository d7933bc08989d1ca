"""js/request_kinds.js says of every request whether it writes and whether it takes a thread."""

from __future__ import annotations

import inspect
import re

import pytest

import lance_nb
from lance_nb.explorer import assets
from lance_nb.explorer.app import DatabaseExplorer, Explorer
from lance_nb.explorer.session import Session
from lance_nb.explorer.widget import HeaderHandlers, RowHistoryHandlers
from tests.support.fake_dataset import small_dataset

SOURCE = (assets.ROOT / "js" / "request_kinds.js").read_text("utf-8")
LISTS = {
    name: set(re.findall(r'"([^"]+)"', names))
    for name, names in re.findall(r"const (\w+) = \[([^\]]*)\];", SOURCE)
}
WIDGET_ONLY = {"ready", "cancel", "travel", "buffers", "views.send", "views.load"}


@pytest.fixture(scope="module")
def handlers():
    session = Session(small_dataset())
    tables = (session, session.keep(HeaderHandlers), session.keep(RowHistoryHandlers))
    own = {kind: do for table in tables for kind, do in table.handlers().items()}
    of_tables = DatabaseExplorer(lance_nb.database("memory://no_tables"))._handlers()
    own |= {kind: do for kind, do in of_tables.items() if kind.startswith("tables.")}
    return own | Explorer.request_handlers(session)


def test_every_request_is_in_one_list(handlers) -> None:
    listed = [kind for names in LISTS.values() for kind in names]
    assert sorted(listed) == sorted(set(handlers) | WIDGET_ONLY)


def test_requests_that_may_be_answered_later_are_listed_as_long(handlers) -> None:
    long = {
        kind
        for kind, do in handlers.items()
        if "Job" in str(inspect.signature(do).return_annotation)
    }
    assert LISTS["LONG_READS"] | LISTS["LONG_WRITES"] >= long
    answered_at_once = set(handlers) - long
    assert LISTS["READS"] | LISTS["WRITES"] >= answered_at_once


def test_requests_that_need_the_open_lock_are_listed_as_writing(handlers) -> None:
    writing = {
        kind
        for kind, do in handlers.items()
        if re.search(r"check_unlocked|_work\(|_change\(|lock\(locked", inspect.getsource(do))
    }
    assert writing
    assert writing <= LISTS["WRITES"] | LISTS["LONG_WRITES"]
