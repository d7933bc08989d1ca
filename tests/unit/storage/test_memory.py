"""The memory store, which is the model for every other one."""

from __future__ import annotations

import uuid

import pytest

from lance_nb.storage import memory
from lance_nb.storage.memory import MemoryStore
from tests.conformance.replacing_tests import ReplacingTests
from tests.conformance.store_tests import StoreTests


class TestMemoryStore(StoreTests, ReplacingTests):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(uuid.uuid4().hex)


def test_stores_of_one_name_share_their_objects():
    name = uuid.uuid4().hex
    MemoryStore(f"{name}/folder").write("x", b"1")
    assert bytes(MemoryStore(name).read("folder/x")) == b"1"
    assert MemoryStore(f"{name}/folder").uri == f"memory://{name}/folder"
    memory.clear(name)
    assert MemoryStore(name).list_recursive("") == []
