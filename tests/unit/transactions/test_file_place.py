"""Where new data files go."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import StorageError
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.transactions.fragment_writer import FilePlace, WriteOptions, write_fragments

TABLE = pa.table({"a": range(10)})


def places() -> tuple[FilePlace, ...]:
    for name in ("own", "base"):
        clear(name)
    return FilePlace(MemoryStore("own")), FilePlace(MemoryStore("base"), "", 3)


def test_paths_are_those_of_the_folder() -> None:
    own, base = places()
    assert (own.path("x"), own.name("data/x")) == ("data/x", "x")
    assert (base.path("x"), base.name("x")) == ("x", "x")


def test_files_go_to_the_places_in_turn() -> None:
    own, base = places()
    options = WriteOptions(max_rows_per_file=4, places=(base, own))
    schema = Schema.from_arrow(TABLE.schema)
    made = write_fragments(TABLE.to_reader(), schema, own.store, options)
    assert [one.files[0].base_id for one in made] == [3, None, 3]
    assert all(base.store.exists(one.files[0].path) for one in made[::2])
    assert own.store.exists(f"data/{made[1].files[0].path}")


def test_what_failed_leaves_no_file_in_any_place(monkeypatch: pytest.MonkeyPatch) -> None:
    own, base = places()
    options = WriteOptions(max_rows_per_file=2, places=(base, own))

    def stop(progress: object) -> None:
        if getattr(progress, "num_files", 0) >= 2:
            raise StorageError("x", "no room")

    with pytest.raises(StorageError):
        write_fragments(
            TABLE.to_reader(max_chunksize=2), Schema.from_arrow(TABLE.schema), own.store,
            options, stop,
        )  # fmt: skip
    assert own.store.list_recursive("") == base.store.list_recursive("") == []
