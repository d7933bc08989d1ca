"""Objects that payloads are copied from."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.file.stored_payloads import COPY_BYTES, StoredPayloads
from lance_nb.storage.memory import MemoryStore, clear


@pytest.fixture
def store() -> MemoryStore:
    clear("stored-payloads")
    store = MemoryStore("stored-payloads")
    store.write("a", bytes(range(256)) * 4)
    store.write("b", b"bytes of b")
    return store


def test_an_object_has_one_number(store: MemoryStore) -> None:
    objects = StoredPayloads()
    assert len(objects) == 0
    assert [objects.add(store, name) for name in ("a", "b", "a", "b")] == [0, 1, 0, 1]
    assert objects.add(MemoryStore("stored-payloads"), "a") == 2  # of another store
    assert len(objects) == 3
    assert [bytes(one) for one in objects.read(1, [(0, 5), (9, 10)])] == [b"bytes", b"b"]


@pytest.mark.parametrize("number", [0, 7])
def test_a_number_without_an_object_is_refused(number: int) -> None:
    with pytest.raises(InvalidInputError, match=f"object {number} of 0"):
        StoredPayloads().read(number, [(0, 1)])


@pytest.mark.parametrize(
    ("size", "sizes"),
    [(0, []), (1, [1]), (300, [300]), (301, [300, 1]), (900, [300, 300, 300])],
)
def test_pieces_have_a_bound(
    store: MemoryStore, size: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert COPY_BYTES == 8 << 20
    monkeypatch.setattr("lance_nb.file.stored_payloads.COPY_BYTES", 300)
    objects = StoredPayloads()
    pieces = list(objects.pieces(objects.add(store, "a"), 7, size))
    assert [len(piece) for piece in pieces] == sizes
    assert b"".join(pieces) == bytes(store.read("a"))[7 : 7 + size]
