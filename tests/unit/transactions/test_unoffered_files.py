"""Files that go when it does not come to a commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format.fragment import DataFile
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.unoffered_files import UnofferedFiles
from tests.support.faulty_store import Fault, FaultyStore, on

FILE = DataFile("a.lance", (0,), (0,), 2, 2)


@pytest.mark.parametrize(("offered", "fails", "stays"), [
    (False, True, False), (True, True, True), (False, False, True),
])  # fmt: skip
def test_files_go_after_an_error_before_the_offer(offered: bool, fails: bool, stays: bool) -> None:
    store = MemoryStore(f"unoffered/{offered}-{fails}")
    store.write("data/a.lance", b"x")
    try:
        with UnofferedFiles(store) as files:
            files.add([FILE])
            if offered:
                files.offer()
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert fails
    assert bool(list(store.list_recursive("data"))) is stays


def test_a_file_that_is_gone_already_is_no_mistake() -> None:
    store = MemoryStore("unoffered/gone")
    with pytest.raises(KeyboardInterrupt), UnofferedFiles(store) as files:
        files.add([FILE])
        raise KeyboardInterrupt


def test_a_file_that_cannot_be_removed_does_not_hide_the_error_nor_the_others() -> None:
    inner = MemoryStore("unoffered/stuck")
    store = FaultyStore(inner, on("delete", "a.lance", Fault.ERROR_BEFORE))
    for name in ("a", "b"):
        inner.write(f"data/{name}.lance", b"x")
    with pytest.raises(KeyboardInterrupt), UnofferedFiles(store) as files:
        files.add([FILE, replace(FILE, path="b.lance")])
        raise KeyboardInterrupt
    assert [one.name for one in inner.list_recursive("data")] == ["a.lance"]
