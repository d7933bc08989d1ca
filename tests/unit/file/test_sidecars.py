"""Blob files beside a data file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lance_nb.file.sidecars import Sidecars
from lance_nb.storage.memory import MemoryStore, clear

ONE = "data/x/10000000000000000000000000000000.blob"
TWO = "data/x/01000000000000000000000000000000.blob"


@pytest.fixture
def store() -> MemoryStore:
    clear("sidecars")
    return MemoryStore("sidecars")


def payload(text: bytes) -> list[bytes]:
    """Return a payload in two pieces."""
    return [text[:1], text[1:]]


def test_shared_files_fill_up(store: MemoryStore):
    sidecars = Sidecars(store, "data/x.lance")
    places = [sidecars.add_shared(payload(text), len(text), 6) for text in (b"abc", b"def", b"g")]
    assert places == [(1, 0), (1, 3), (2, 0)]
    assert sidecars.finish() == [ONE, TWO]
    assert bytes(store.read(ONE)) == b"abcdef"
    assert bytes(store.read(TWO)) == b"g"


def test_large_payloads_have_their_own(store: MemoryStore):
    sidecars = Sidecars(store, "data/x.lance")
    assert sidecars.add_shared(payload(b"a"), 1, 100) == (1, 0)
    assert sidecars.add_own(payload(b"big")) == 2
    assert sidecars.add_shared(payload(b"b"), 1, 100) == (1, 1)
    sidecars.finish()
    assert bytes(store.read(TWO)) == b"big"
    assert bytes(store.read(ONE)) == b"ab"


def test_an_aborted_file_leaves_none(store: MemoryStore):
    sidecars = Sidecars(store, "data/x.lance")
    sidecars.add_own(payload(b"big"))
    sidecars.add_shared(payload(b"a"), 1, 100)
    sidecars.abort()
    assert store.list_recursive("") == []


def test_a_payload_that_ends_in_an_error_leaves_none(store: MemoryStore):
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError

    sidecars = Sidecars(store, "data/x.lance")
    with pytest.raises(OSError):
        sidecars.add_own(broken())
    with pytest.raises(OSError):
        sidecars.add_shared(broken(), 8, 100)
    sidecars.abort()
    assert store.list_recursive("") == []
