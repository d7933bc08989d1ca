"""What a store must do that compares and replaces in one step (ref_record.Replacing)."""

from __future__ import annotations

import threading

import pytest

from lance_nb.errors import ObjectNotFoundError
from lance_nb.storage.base import Store


class ReplacingTests:
    """``store`` is empty."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def test_an_object_that_is_as_expected_is_replaced(self, store):
        store.write("r/x", b"old")
        assert store.replace("r/x", b"old", b"new") is True
        assert bytes(store.read("r/x")) == b"new"

    def test_an_object_that_has_changed_is_left_alone(self, store):
        store.write("r/x", b"other")
        assert store.replace("r/x", b"old", b"new") is False
        assert bytes(store.read("r/x")) == b"other"

    @pytest.mark.parametrize("path", ["r/nothing", "nowhere/x"])
    def test_a_missing_object_is_not_created(self, store, path: str):
        store.write("r/x", b"1")
        with pytest.raises(ObjectNotFoundError):
            store.replace(path, b"old", b"new")
        assert not store.exists(path)

    def test_no_change_of_16_racing_writers_is_lost(self, store):
        store.write("r/x", b"0")

        def count() -> None:
            done = False
            while not done:
                old = bytes(store.read("r/x"))
                done = store.replace("r/x", old, b"%d" % (int(old) + 1))

        threads = [threading.Thread(target=count) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bytes(store.read("r/x")) == b"16"
        assert store.list_names("r") == ["x"]
