"""What every store must do. A store's own test file subclasses these and provides ``store``."""

from __future__ import annotations

import threading

import pytest

from lance_nb.errors import (
    CorruptFileError,
    InternalError,
    InvalidInputError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from lance_nb.storage.base import ByteRange, Store

BIG = bytes(range(256)) * 1024  # above the size up to which a local file is read in one go

BAD_PATHS = (
    "",
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a//b",
    "./a",
    "a/.",
    "a/",
    "a\0b",
    "a\\b",
    "..\\x",
    "C:/x",
    "c:x",
)


class StoreReadingTests:
    """Reading and listing. ``store`` is empty and ``put`` fills it."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def put(self, store: Store, path: str, data: bytes) -> None:
        store.write(path, data)

    @pytest.mark.parametrize("data", [b"", b"hello", BIG], ids=["empty", "small", "big"])
    def test_an_object_reads_back_whole(self, store: Store, data: bytes):
        self.put(store, "folder/x.bin", data)
        assert bytes(store.read("folder/x.bin")) == data
        assert store.size("folder/x.bin") == len(data)
        assert store.exists("folder/x.bin")
        mapped = store.map("folder/x.bin")
        assert mapped is None or bytes(mapped) == data

    @pytest.mark.parametrize("data", [b"0123456789" * 3, BIG], ids=["small", "big"])
    def test_ranges_come_back_in_the_order_asked_for(self, store: Store, data: bytes):
        self.put(store, "x", data)
        wanted = [ByteRange(10, 20), ByteRange(0, 0), ByteRange(0, 5), ByteRange(15, 30)]
        wanted += [ByteRange(len(data), len(data)), ByteRange(0, len(data)), ByteRange(10, 20)]
        found = store.read_ranges("x", wanted)
        assert [bytes(one) for one in found] == [data[one.start : one.stop] for one in wanted]
        assert bytes(store.read_range("x", ByteRange(1, 3))) == data[1:3]
        assert store.read_ranges("x", []) == []

    def test_what_is_read_cannot_be_changed(self, store: Store):
        self.put(store, "x", BIG)
        for view in (store.read("x"), store.read_range("x", ByteRange(0, 10))):
            assert memoryview(view).readonly

    @pytest.mark.parametrize("size", [0, 16, 65_536, 10_000_000])
    def test_the_tail_comes_with_the_size(self, store: Store, size: int):
        self.put(store, "x", BIG)
        tail, total = store.read_tail("x", size)
        assert total == len(BIG)
        assert bytes(tail) == BIG[max(len(BIG) - size, 0) :]

    def test_a_range_past_the_end_is_refused(self, store: Store):
        self.put(store, "x", b"0123456789")
        with pytest.raises(CorruptFileError):
            store.read_range("x", ByteRange(5, 11))
        with pytest.raises(CorruptFileError):
            store.read_ranges("x", [ByteRange(0, 1), ByteRange(100, 2**60)])

    def test_a_missing_object_is_reported_as_such(self, store: Store):
        for read in (
            store.read,
            store.size,
            lambda path: store.read_tail(path, 10),
            lambda path: store.read_range(path, ByteRange(0, 1)),
        ):
            with pytest.raises(ObjectNotFoundError, match=r"nothing\.here"):
                read("some/nothing.here")
        assert not store.exists("some/nothing.here")

    def test_a_folder_is_no_object(self, store: Store):
        self.put(store, "folder/x", b"1")
        assert not store.exists("folder")

    def test_listing_gives_names_of_files_directly_inside(self, store: Store):
        for path in ("a/1", "a/2.txt", "a/deep/3", "b", "a/naïve ✓ name"):
            self.put(store, path, path.encode())
        assert sorted(store.list_names("a")) == ["1", "2.txt", "naïve ✓ name"]
        assert sorted(store.list_names("a/")) == ["1", "2.txt", "naïve ✓ name"]
        assert store.list_names("") == ["b"]
        infos = {info.name: info for info in store.list("a")}
        sizes = {name: info.size_bytes for name, info in infos.items()}
        assert sizes == {name: len(f"a/{name}".encode()) for name in infos}
        assert all(info.modified is None or info.modified.tzinfo for info in infos.values())

    def test_a_listing_sees_what_was_written_since_the_last_one(self, store: Store):
        self.put(store, "a/1", b"")
        assert store.list_names("a") == ["1"]
        self.put(store, "a/2", b"")
        assert sorted(store.list_names("a")) == ["1", "2"]

    def test_a_missing_folder_is_empty(self, store: Store):
        assert store.list("nowhere") == []
        assert store.list_names("nowhere") == []
        assert store.list_recursive("nowhere") == []

    def test_recursive_listing_names_paths_below_the_folder(self, store: Store):
        for path in ("t/a/1", "t/a/b/2", "t/3", "u/4"):
            self.put(store, path, b"x")
        assert sorted(info.name for info in store.list_recursive("t")) == ["3", "a/1", "a/b/2"]
        assert len(store.list_recursive("")) == 4

    def test_a_child_is_rooted_below(self, store: Store):
        self.put(store, "tree/dev/x/_versions/1", b"1")
        child = store.child("tree/dev/x")
        assert bytes(child.read("_versions/1")) == b"1"
        assert child.list_names("_versions") == ["1"]
        assert child.uri.endswith("tree/dev/x")
        assert child.scheme == store.scheme
        with pytest.raises(InvalidInputError):
            store.child("../x")

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_a_path_that_could_leave_the_root_is_refused(self, store: Store, path: str):
        for act in (store.read, store.size, store.exists, store.map, store.child):
            with pytest.raises(InvalidInputError):
                act(path)
        with pytest.raises(InvalidInputError):
            store.write(path, b"")
        with pytest.raises(InvalidInputError):
            store.write_if_absent(path, b"")

    def test_neither_text_form_is_empty(self, store: Store):
        assert store.uri
        assert store.uri in repr(store)


class StoreCreatingTests(StoreReadingTests):
    """Also objects that are written piece by piece."""

    def test_an_object_can_be_written_piece_by_piece(self, store: Store):
        upload = store.create("a/x")
        upload.write([b"one ", bytearray(b"two "), memoryview(b"three "), b""])
        upload.write([])
        upload.write([bytes([k % 256]) for k in range(3000)])
        upload.write([BIG])
        upload.finish()
        expected = b"one two three " + bytes(k % 256 for k in range(3000)) + BIG
        assert bytes(store.read("a/x")) == expected
        assert store.list_names("a") == ["x"]

    def test_pieces_replace_what_was_there(self, store: Store):
        store.write("x", BIG)
        upload = store.create("x")
        upload.write([b"new"])
        upload.finish()
        assert bytes(store.read("x")) == b"new"

    def test_an_object_without_pieces_is_empty(self, store: Store):
        store.create("x").finish()
        assert bytes(store.read("x")) == b""

    def test_an_aborted_object_leaves_nothing(self, store: Store):
        upload = store.create("a/x")
        upload.write([BIG, BIG])
        upload.abort()
        upload.abort()
        assert store.list_names("a") == []
        with pytest.raises(InternalError):
            upload.write([b"more"])
        with pytest.raises(InternalError):
            upload.finish()

    def test_abort_keeps_what_is_finished(self, store: Store):
        upload = store.create("a/x")
        upload.finish()
        upload.abort()
        assert store.list_names("a") == ["x"]


class StoreTests(StoreCreatingTests):
    """All of it: also replacing, exclusive creation and deletion."""

    def test_write_replaces(self, store: Store):
        store.write("x", BIG)
        old = store.read("x")
        store.write("x", b"new" * 50_000)
        assert bytes(store.read("x")) == b"new" * 50_000
        assert bytes(old) == BIG

    def test_writing_leaves_only_the_object(self, store: Store):
        store.write("a/x", b"1")
        store.write_if_absent("a/y", b"2")
        with pytest.raises(ObjectExistsError):
            store.write_if_absent("a/y", b"3")
        assert sorted(store.list_names("a")) == ["x", "y"]

    @pytest.mark.parametrize("data", [b"1", bytearray(b"1"), memoryview(b"1")])
    def test_any_bytes_can_be_written(self, store: Store, data):
        store.write("x", data)
        store.write_if_absent("y", data)
        assert bytes(store.read("x")) == bytes(store.read("y")) == b"1"

    def test_exclusive_creation_never_replaces(self, store: Store):
        store.write_if_absent("v/1", b"first")
        with pytest.raises(ObjectExistsError, match="v/1"):
            store.write_if_absent("v/1", b"second")
        assert bytes(store.read("v/1")) == b"first"

    @pytest.mark.parametrize("round_number", range(5))
    def test_of_16_racing_writers_exactly_one_wins(self, store: Store, round_number: int):
        barrier = threading.Barrier(16)
        outcomes: dict[int, str] = {}

        def race(number: int) -> None:
            barrier.wait()
            try:
                store.write_if_absent("_versions/1.manifest", b"writer %d" % number)
                outcomes[number] = "won"
            except ObjectExistsError:
                outcomes[number] = "lost"

        threads = [threading.Thread(target=race, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [number for number, outcome in outcomes.items() if outcome == "won"]
        assert len(outcomes) == 16
        assert len(winners) == 1
        assert bytes(store.read("_versions/1.manifest")) == b"writer %d" % winners[0]
        assert store.list_names("_versions") == ["1.manifest"]

    def test_deleting_twice_is_no_error(self, store: Store):
        store.write("a/x", b"1")
        store.delete("a/x")
        store.delete("a/x")
        assert not store.exists("a/x")
        assert store.list_names("a") == []
