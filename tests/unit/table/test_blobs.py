"""Where payloads may lie, and which parts of them may be read."""

from __future__ import annotations

import io
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ArgumentError, CorruptFileError, InvalidInputError
from lance_nb.table.blobs import described_blobs

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
PAYLOADS = [b"0123456789", None, b"", b"abcdef"]


@pytest.fixture
def dataset() -> lance_nb.LanceDataset:
    table = pa.table([pa.array(PAYLOADS, pa.large_binary())], schema=pa.schema([BLOB]))
    return lance_nb.write_dataset(table, f"memory://blobs-{uuid4().hex}/d.lance")


def test_parts_are_read_where_they_lie(dataset: lance_nb.LanceDataset) -> None:
    wanted = [(3, 2, 3), (0, 0, 10), (1, 5, 5), (0, 9, 1), (0, 10, 0), (2, 0, 0), (3, 0, 1)]
    found = dataset.read_blob_ranges("b", wanted, selector="indices")
    assert found == [
        (0, 3, b"cde"), (1, 0, PAYLOADS[0]), (2, 1, None), (3, 0, b"9"), (4, 0, b""), (5, 2, b""),
        (6, 3, b"a"),
    ]  # fmt: skip
    whole = dataset.read_blobs("b", indices=[3, 1, 0])
    assert whole == [(3, PAYLOADS[3]), (1, None), (0, PAYLOADS[0])]


@pytest.mark.parametrize("part", [(-1, 1), (-1, 3), (0, -1), (3, -1), (0, 11), (10, 1), (11, 0)])
def test_parts_outside_of_a_payload_are_refused(dataset, part: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="blob range request 1 for row address 0"):
        dataset.read_blob_ranges("b", [(3, 0, 1), (0, *part)], selector="indices")


def test_a_payload_lies_inside_of_its_file(dataset: lance_nb.LanceDataset) -> None:
    snapshot = dataset.opened[1]
    field = snapshot.manifest.schema.field("b")
    (file,) = dataset.take_blobs("b", indices=[0])
    end = file.store.size(file.path)

    def opened(position: int, size: int) -> list:
        return described_blobs(snapshot, field, [{"position": position, "size": size}], [0])

    for position, size in ((0, end), (end - 3, 3), (end - 1, 1), (1, end - 1)):
        (one,) = opened(position, size)
        assert (one.start, one.size()) == (position, size)
        assert one.read() == bytes(file.store.read(file.path))[position : position + size]
    for position, size in ((0, end + 1), (end - 3, 4), (end, 1), (end + 1, 1), (1, end)):
        with pytest.raises(CorruptFileError, match=f"a blob of {size} bytes"):
            opened(position, size)
    with pytest.raises(CorruptFileError, match="the blobs of fragment 7"):
        described_blobs(snapshot, field, [{"position": 0, "size": 1}], [7 << 32])


def test_a_payload_is_a_file(dataset: lance_nb.LanceDataset) -> None:
    for ahead in (0, 1, 3, 4, 100):
        (file,) = dataset.take_blobs("b", indices=[0], buffer_size=ahead)
        assert [file.read(3), file.tell(), file.read(4), file.read(9), file.read(1)] == [
            b"012", 3, b"3456", b"789", b"",
        ]  # fmt: skip
        assert [file.seek(-4, 2), file.read(2), file.seek(-3, 1), file.read()] == [
            6, b"67", 5, b"56789",
        ]  # fmt: skip
        assert [file.seek(12), file.read(), file.seek(0), file.read1(2)] == [12, b"", 0, b"01"]
        buffer = bytearray(b"----")
        file.seek(8)
        assert (file.readinto(buffer), bytes(buffer)) == (2, b"89--")
        assert file.read_ranges([(0, 1), (9, 5), (10, 1), (4, 0)]) == [b"0", b"9", b"", b""]
        assert file.tell() == 10
        for offset, whence in ((-1, 0), (-11, 1), (-11, 2), (0, 3)):
            with pytest.raises(InvalidInputError, match="cannot seek"):
                file.seek(offset, whence)
        with pytest.raises(InvalidInputError, match="cannot start at -1"):
            file.read_range(-1, 2)
    for wrong, error in ((True, ArgumentError), ("1", ArgumentError), (-1, InvalidInputError)):
        with pytest.raises(error, match="buffer_size"):
            dataset.take_blobs("b", indices=[0], buffer_size=wrong)


def test_what_was_read_ahead_is_not_read_again(monkeypatch: pytest.MonkeyPatch, dataset) -> None:
    (file,) = dataset.take_blobs("b", indices=[0], buffer_size=4)
    read: list[tuple[int, int]] = []
    real = type(file).read_range

    def noted(self, offset: int, length: int) -> bytes:
        read.append((offset, length))
        return real(self, offset, length)

    monkeypatch.setattr(type(file), "read_range", noted)

    assert [file.read(2) for _ in range(4)] == [b"01", b"23", b"45", b"67"]
    assert read == [(0, 4), (4, 4)]
    file.seek(5)
    assert (file.read(3), file.read(1)) == (b"567", b"8")
    assert read == [(0, 4), (4, 4), (8, 4)]
    assert file.read(4) == b"9"
    assert len(read) == 3


def test_reads_of_nothing_return_nothing(dataset: lance_nb.LanceDataset) -> None:
    for buffer_size in (0, 4):
        (file,) = dataset.take_blobs("b", indices=[0], buffer_size=buffer_size)
        assert (file.read1(0), file.read(0), file.tell()) == (b"", b"", 0)
        assert (file.read1(3), file.tell()) == (b"012", 3)
        assert (file.read1(-1), file.tell()) == (b"3456789", 10)
        assert (file.read1(-1), file.readall()) == (b"", b"")


def test_one_read_of_any_size_is_bounded() -> None:
    size = io.DEFAULT_BUFFER_SIZE  # 8,192 bytes, from Python 3.14 on 131,072
    payload = bytes(range(256)) * (size // 128)
    table = pa.table([pa.array([payload], pa.large_binary())], schema=pa.schema([BLOB]))
    made = lance_nb.write_dataset(table, f"memory://blobs-{uuid4().hex}/d.lance")
    (file,) = made.take_blobs("b", indices=[0])
    assert [file.read1(), file.read1(-1), file.read1()] == [payload[:size], payload[size:], b""]
