from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError
from lance_nb.format.fragment import DeletionFileType
from tests.golden.copies import expected


@pytest.fixture
def fragments(at):
    return at(5).get_fragments()


def test_a_fragment_says_what_it_holds(fragments):
    first, second, third = fragments
    assert [one.fragment_id for one in fragments] == [0, 1, 2]
    assert [one.physical_rows for one in fragments] == [40, 30, 5060]
    assert [one.num_deletions for one in fragments] == [4, 0, 5019]
    assert [one.count_rows() for one in fragments] == [36, 30, 41]
    assert first.metadata.deletion_file.file_type is DeletionFileType.ARROW
    assert first.deletion_file().startswith("_deletions/0-")
    assert second.deletion_file() is None
    assert third.metadata.deletion_file.file_type is DeletionFileType.BITMAP
    assert [file.path for file in second.data_files()] == [second.metadata.files[0].path]
    assert repr(first) == "<lance_nb.LanceFragment 0: 36 rows>"


def test_the_rows_of_the_fragments_are_those_of_the_dataset(fragments):
    whole = expected("history", 5)
    assert pa.concat_tables([one.to_table() for one in fragments]).equals(whole)
    assert pa.Table.from_batches(
        [batch for one in fragments for batch in one.to_batches(["id"])]
    ).equals(whole.select(["id"]))


def test_a_fragment_is_read_with_the_options_of_a_scan(fragments):
    assert fragments[1].to_table(["id"], limit=2, offset=3)["id"].to_pylist() == [43, 44]
    assert fragments[1].head(3, ["id"])["id"].to_pylist() == [40, 41, 42]
    found = fragments[2].to_table(["id"], limit=1, with_row_address=True)
    assert found["_rowaddr"][0].as_py() >> 32 == 2
    with pytest.raises(ColumnNotFoundError):
        fragments[0].to_table(["nope"])


@pytest.mark.parametrize("number", [None, 0, 7])
def test_progress_is_reported_the_id_of_a_new_fragment(tmp_path: Path, number: int | None) -> None:
    seen = []

    class Note(lance_nb.FragmentWriteProgress):
        def begin(self, fragment: Any, **kwargs: Any) -> None:
            seen.append(("begin", fragment.id, fragment.physical_rows))

        def complete(self, fragment: Any, **kwargs: Any) -> None:
            seen.append(("complete", fragment.id, len(fragment.files)))

    table = pa.table({"a": [1]})
    made = lance_nb.LanceFragment.create(tmp_path / "d", table, number, progress=Note())
    assert seen == [("begin", number or 0, 0), ("complete", number or 0, 1)]
    assert made.id == (number or 0)


def test_a_fragment_id_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="fragment id -1"):
        lance_nb.LanceFragment.create(tmp_path / "d", pa.table({"a": [1]}), -1)
    assert not (tmp_path / "d").exists()
