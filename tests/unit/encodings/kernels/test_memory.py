"""Memory for decoded bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings.kernels import memory
from lance_nb.errors import NotSupportedError


def test_bytes_come_writable_from_arrows_pool() -> None:
    before = pa.total_allocated_bytes()
    room = memory.allocate(1 << 20)
    assert pa.total_allocated_bytes() - before >= 1 << 20
    assert room.flags.writeable
    assert room.ctypes.data % 64 == 0
    assert memory.zeros(10).tobytes() == bytes(10)


def test_no_bytes_are_no_allocation() -> None:
    before = pa.total_allocated_bytes()
    assert memory.allocate(0).size == 0
    assert memory.zeros(0).size == 0
    assert pa.total_allocated_bytes() == before


def test_memory_goes_back_when_the_last_view_is_gone() -> None:
    before = pa.total_allocated_bytes()
    view = memory.allocate(1 << 20)[5:10].view("u1")
    assert pa.total_allocated_bytes() > before
    del view
    assert pa.total_allocated_bytes() == before


def test_byte_strings_become_one_array() -> None:
    values = [b"", b"one", bytes(range(256)), b""]
    found = memory.from_bytes(values)
    found.validate(full=True)
    assert found.to_pylist() == values
    assert memory.from_bytes([]).to_pylist() == []


def test_more_than_two_gigabytes_are_no_array() -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return 2**30

    with pytest.raises(NotSupportedError, match="2,147,483,648 bytes"):
        memory.from_bytes([Long(), Long()])
