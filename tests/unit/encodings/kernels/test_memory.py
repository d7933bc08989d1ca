"""Memory for decoded bytes."""

from __future__ import annotations

import pyarrow as pa

from lance_nb.encodings.kernels import memory


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
