from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotFoundError
from lance_nb.explorer.models.fragment_detail import file_pages, fragment_detail
from tests.unit.explorer.stored_datasets import worn_dataset


def test_a_fragment_tells_its_files_and_the_version_that_wrote_each(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    found = fragment_detail(dataset, 1)
    assert (found.id, found.rows, found.deleted) == (1, 100, 30)
    first, second = found.files
    assert (first.columns, first.written, first.dropped) == (("id", "vector"), "main:2", 1)
    assert (second.columns, second.written) == (("double",), "main:5")
    assert found.deletion_file is not None
    assert found.deletion_file["path"].startswith("_deletions/")
    assert found.indices == ()
    assert fragment_detail(dataset, 0).deletion_file is None


def test_columns_that_a_later_file_replaced_are_tombstoned(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    dataset.alter_columns({"path": "id", "data_type": pa.int32()})
    found = fragment_detail(lance_nb.dataset(dataset.uri), 0)
    lost = sum(file.tombstoned + file.dropped for file in found.files)
    assert lost == 2


def test_files_of_cleaned_up_versions_are_from_then_or_before(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    dataset.tags.delete("v1")
    dataset.cleanup_old_versions(retain_versions=2)
    first, _ = fragment_detail(lance_nb.dataset(dataset.uri), 0).files
    assert first.written == "main:5 or earlier"


def test_pages_tell_layout_codecs_and_what_they_save(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    pages = file_pages(dataset, fragment_detail(dataset, 1).files[0].path)
    assert [column.name for column in pages.columns] == ["id", "(not in the schema)", "vector"]
    number, dropped, vector = pages.columns
    assert (number.rows, number.plain, dropped.plain, vector.plain) == (100, 800, None, 1600)
    assert "mini_block" in number.encodings[0]["encoding"]
    assert pages.bytes == sum(column.bytes for column in pages.columns)
    with pytest.raises(NotFoundError):
        file_pages(dataset, "nothing.lance")
