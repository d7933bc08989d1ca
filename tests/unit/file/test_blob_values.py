"""Blobs as callers have them, and stored objects that payloads are copied from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.file.blob_values import (
    COPY_BYTES,
    Payloads,
    StoredPayloads,
    check_one_form,
    fit_blobs,
    stored_bytes,
)
from lance_nb.format.blob_fields import BLOB_VALUES
from lance_nb.storage.memory import MemoryStore, clear


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_binary_is_data(kind: pa.DataType):
    fitted = fit_blobs(pa.array([b"a", None], kind), "b")
    assert fitted.type == BLOB_VALUES
    value = dict.fromkeys(("data", "uri", "position", "size", "object", "base"))
    assert fitted.to_pylist() == [value | {"data": b"a"}, None]


def test_structs_may_have_fewer_fields():
    kind = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    fitted = fit_blobs(pa.array([{"data": b"a"}, {"uri": "x:y"}, None], kind).slice(1), "b")
    assert [row and row["uri"] for row in fitted.to_pylist()] == ["x:y", None]


@pytest.mark.parametrize(
    "array",
    [pa.array([1]), pa.array([{"data": "text"}]), pa.array([{"what": b"x"}])],
    ids=["number", "text", "other field"],
)
def test_other_types_are_refused(array: pa.Array):
    with pytest.raises(SchemaMismatchError, match="'b'"):
        fit_blobs(array, "b")


def test_payloads_are_ranges():
    array = pa.array([b"skipped", b"ab", None, b"", b"cde"], pa.large_binary()).slice(1)
    values = fit_blobs(array, "b")
    payloads = Payloads.of(values, StoredPayloads())
    assert payloads.sizes.tolist() == [2, 0, 0, 3]
    assert [bytes(one) for one in payloads.pieces()] == [b"ab", b"", b"", b"cde"]
    assert [bytes(one) for one in payloads.chosen(np.array([3])).pieces()] == [b"cde"]
    assert Payloads.of(values.slice(0, 0), StoredPayloads()).pieces() == []


def stored(
    places: list[tuple[int, int, int] | bytes | None],
) -> tuple[pa.StructArray, StoredPayloads, bytes]:
    """Return values that name (object, position, size), two objects, and the bytes of each."""
    clear("payloads")
    store = MemoryStore("payloads")
    data = np.random.default_rng(1).bytes(3 * COPY_BYTES)
    source = StoredPayloads()
    for name in ("a", "b"):
        store.write(name, data)
        assert source.add(store, name) == source.add(store, name)
    return values_of(places), source, data


def values_of(places: list[tuple[int, int, int] | bytes | None]) -> pa.StructArray:
    """Return values that name (object, position, size), or have data."""
    rows = [
        None
        if one is None
        else {"data": one}
        if isinstance(one, bytes)
        else dict(zip(("object", "position", "size"), one, strict=True))
        for one in places
    ]
    return pa.array(rows, BLOB_VALUES)


def test_stored_payloads_come_in_groups_and_pieces():
    """None is larger than two times what is read at once, in whatever order they come."""
    places = [
        (0, 64, 10), None, b"here", (1, 5, COPY_BYTES), (0, 0, 3), (0, 7, COPY_BYTES + 9),
        (0, 200, 30), (1, 0, 5), (1, COPY_BYTES, 2 * COPY_BYTES), (0, 3, 0),
        *((0, at, COPY_BYTES // 2) for at in range(6)),
    ]  # fmt: skip
    values, source, data = stored(places)
    payloads = Payloads.of(values, source)
    found = []
    for group in payloads.groups():
        assert group.is_streamed or int(group.sizes.sum()) <= 2 * COPY_BYTES
    for pieces in payloads.streams():
        parts = [bytes(one) for one in pieces]
        assert max(map(len, parts), default=0) <= COPY_BYTES
        found.append(b"".join(parts))
    assert found == [
        b"" if one is None else one if isinstance(one, bytes) else data[one[1] : one[1] + one[2]]
        for one in places
    ]


@pytest.mark.parametrize(
    ("places", "groups"),
    [
        ([(0, 100 * k, 10) for k in range(50)], [50]),
        ([(0, 0, COPY_BYTES)] * 3, [1, 1, 1]),
        ([(0, 0, COPY_BYTES // 2)] * 5, [2, 2, 1]),
        ([(0, 0, 9), (0, 9, COPY_BYTES + 1), (0, 9, 9), (0, 50, 9)], [1, 1, 2]),
        ([(0, 0, 9), (0, 9, COPY_BYTES), (0, 9, 9)], [2, 1]),
        ([b"x" * 9] * 9, [9]),
        ([], [0]),
    ],
)
def test_payloads_are_grouped_by_their_bytes(places: list, groups: list[int]):
    found = list(Payloads.of(values_of(places), StoredPayloads()).groups())
    assert [one.sizes.size for one in found] == groups
    large = [one for one in places if isinstance(one, tuple) and one[2] > COPY_BYTES]
    assert sum(one.is_streamed for one in found) == len(large)


def test_payloads_far_apart_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch):
    """Near ones with what lies between them: up to as many bytes as are wanted, and 64 for each."""
    asked: list[list[tuple[int, int]]] = []
    values, source, data = stored([(0, 0, 10), (0, 158, 10), (1, 0, 10), (1, 159, 10)])
    read = source.read
    monkeypatch.setattr(source, "read", lambda *one: asked.append(one[1]) or read(*one))
    payloads = Payloads.of(values, source)
    assert [bytes(one) for one in payloads.pieces()] == [
        data[at : at + 10] for at in (0, 158, 0, 159)
    ]
    assert asked == [[(0, 168)], [(0, 10), (159, 169)]]


def test_bytes_to_copy_are_known_per_row():
    values, _, _ = stored([(0, 0, 5), None, b"here", (1, 9, 7)])
    assert stored_bytes(values).tolist() == [5, 0, 0, 7]
    struct = pa.StructArray.from_arrays([values, values, pa.array([1] * 4)], names=["a", "b", "c"])
    assert stored_bytes(struct).tolist() == [10, 0, 0, 14]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4], pa.int32()), values)
    assert stored_bytes(lists).tolist() == [5, 0, 7]
    assert stored_bytes(pa.array([1])) is None


def test_an_object_that_was_not_given_is_refused():
    values, _, _ = stored([(2, 0, 5)])
    with pytest.raises(InvalidInputError, match="object 2 of 0"):
        list(Payloads.of(values, StoredPayloads()).streams())


@pytest.mark.parametrize(("data", "problem"), [(True, "both"), (False, "neither")])
def test_a_value_has_one_form(data: bool, problem: str):
    has = np.array([True, data])
    with pytest.raises(InvalidInputError, match=f"value 1.*{problem}"):
        check_one_form(has, np.array([False, data]), np.zeros(2, bool), "b")
    check_one_form(has, np.array([False, data]), np.array([False, True]), "b")


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
    monkeypatch.setattr("lance_nb.file.blob_values.COPY_BYTES", 300)
    objects = StoredPayloads()
    pieces = list(objects.pieces(objects.add(store, "a"), 7, size))
    assert [len(piece) for piece in pieces] == sizes
    assert b"".join(pieces) == bytes(store.read("a"))[7 : 7 + size]
