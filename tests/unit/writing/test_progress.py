from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb.errors import StorageError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore
from lance_nb.writing.fragment_writer import WriteOptions, write_fragments
from lance_nb.writing.progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    NumberedProgress,
    ProgressCounter,
)
from tests.support.committing import fragment


def test_rows_add_up():
    seen = []
    counter = ProgressCounter(10, lambda done, total: seen.append((done, total)))
    counter.add(3)
    counter.add(7)
    ProgressCounter(10, None).add(1)
    assert seen == [(3, 10), (10, 10)]


@pytest.mark.parametrize("metadata", [{"rank": "3"}, {}, None], ids=["some", "empty", "none"])
def test_a_fragment_leaves_its_id_and_the_metadata_until_it_is_complete(
    tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    folder, one = tmp_path / "a/b", fragment("rows", identity=7)
    progress = FileSystemFragmentWriteProgress(str(folder), metadata)

    progress.begin(one)

    state = json.loads((folder / "fragment_7.in_progress").read_text())
    assert state == {"fragment_id": 7, "metadata": metadata or {}}
    assert json.loads((folder / "fragment_7.json").read_text()) == one.to_json()

    progress.complete(one)

    assert [path.name for path in folder.iterdir()] == ["fragment_7.json"]
    with pytest.raises(StorageError, match="cannot note the end"):
        progress.complete(one)


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no folder for progress"):
        FileSystemFragmentWriteProgress("nothing://x")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write progress"):
        FileSystemFragmentWriteProgress(str(tmp_path / "file")).begin(fragment())


def test_a_file_begins_as_a_fragment_without_rows() -> None:
    told: list[tuple[str, Fragment]] = []

    class Note(FragmentWriteProgress):
        def begin(self, fragment: Fragment) -> None:
            told.append(("begin", fragment))

        def complete(self, fragment: Fragment) -> None:
            told.append(("complete", fragment))

    table = pa.table({"id": range(5)})
    schema = Schema.from_arrow(table.schema)
    store, options = MemoryStore("write-progress"), WriteOptions(max_rows_per_file=3)
    made = write_fragments(table.to_reader(), schema, store, options, Note())
    empty = Fragment(0, [], 0)
    assert told == [
        ("begin", empty),
        ("complete", made[0]),
        ("begin", empty),
        ("complete", made[1]),
    ]


def test_a_fragment_may_be_reported_under_a_number_of_the_caller(tmp_path: Path) -> None:
    progress = NumberedProgress(FileSystemFragmentWriteProgress(str(tmp_path)), 9)
    progress.begin(fragment("rows", identity=0))
    assert {one.name for one in tmp_path.iterdir()} == {
        "fragment_9.in_progress", "fragment_9.json",
    }  # fmt: skip
    progress.complete(fragment("rows", identity=0))
    assert [one.name for one in tmp_path.iterdir()] == ["fragment_9.json"]
