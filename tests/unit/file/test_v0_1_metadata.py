"""Footer, messages and page table of 0.1 files."""

from __future__ import annotations

import struct

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.file.source import FileSource
from lance_nb.file.v0_1_metadata import LegacyPage, read_legacy_metadata
from tests.support.legacy_files import LegacyFile, example, node
from tests.support.reading import BytesStore


def source(data: bytes) -> FileSource:
    return FileSource(BytesStore(data), "old.lance")


def test_the_end_of_the_file_leads_to_schema_and_pages() -> None:
    made = LegacyFile([node(4, "a", "int8"), node(6, "b", "int8")], [0, 2, 5])
    made.add(4, 0, b"ab", 2)
    made.add(6, 1, b"cde", 3)
    data = made.finish()
    metadata = read_legacy_metadata(source(data))

    assert metadata.schema.names == ["a", "b"]
    assert metadata.pages.first_id == 4
    assert metadata.pages.batch_ends.tolist() == [2, 5]
    assert metadata.statistics is None
    assert metadata.pages.page(source(data), 4, 0) == LegacyPage(3, 2)
    assert metadata.pages.page(source(data), 6, 1) == LegacyPage(5, 3)
    assert metadata.pages.page(source(data), 5, 0) == LegacyPage(0, 0)


def test_a_file_without_rows_has_no_batches() -> None:
    data = LegacyFile([node(0, "a", "int8")], []).finish()

    assert read_legacy_metadata(source(data)).pages.batch_ends.tolist() == []


def test_a_batch_may_be_empty() -> None:
    data = LegacyFile([node(0, "a", "int8")], [0, 2, 2, 5]).finish()

    assert read_legacy_metadata(source(data)).pages.batch_ends.tolist() == [2, 2, 5]


@pytest.mark.parametrize("offsets", [[1, 2], [0, 3, 2], [0, -1]])
def test_batches_that_do_not_go_up_from_0_are_refused(offsets: list[int]) -> None:
    data = LegacyFile([node(0, "a", "int8")], offsets).finish()

    with pytest.raises(CorruptFileError, match="batch offsets"):
        read_legacy_metadata(source(data))


@pytest.mark.parametrize("position", [0, 1, 1 << 40, (1 << 64) - 1])
def test_a_message_that_is_elsewhere_is_refused(position: int) -> None:
    data = example()

    with pytest.raises(CorruptFileError):
        read_legacy_metadata(source(data[:-16] + struct.pack("<Q", position) + data[-8:]))


@pytest.mark.parametrize("size", [0, 8, 15])
def test_a_cut_file_is_refused(size: int) -> None:
    with pytest.raises(CorruptFileError):
        read_legacy_metadata(source(example()[-size:] if size else b""))


def test_a_page_table_past_the_end_is_refused() -> None:
    data = LegacyFile([node(0, "a", "int8")], [0, 2]).finish()
    metadata = read_legacy_metadata(source(data))

    with pytest.raises(CorruptFileError):
        metadata.pages.page(source(data), 1 << 30, 0)


def counted_from_zero(ids: list[int], at_zero: tuple[int, int] = (0, 0)) -> bytes:
    """Make a file of early 2023: its page table has entries from field 0 on."""
    made = LegacyFile([node(one, f"f{one}", "int8") for one in ids], [0, 2, 5])
    made.add(ids[0], 1, b"cde", 3)
    made.pages[0, 0] = at_zero
    table = made.page_table

    def from_zero(num_batches: int, found: list[int]) -> bytes:
        return table(num_batches, [0, *found])

    made.page_table = from_zero  # type: ignore[method-assign,assignment]
    return made.finish()


@pytest.mark.parametrize("ids", [[1], [2, 3]])
def test_a_page_table_may_count_fields_from_zero(ids: list[int]) -> None:
    data = counted_from_zero(ids)
    pages = read_legacy_metadata(source(data)).pages
    assert pages.first_id == 0
    assert pages.page(source(data), ids[0], 1) == LegacyPage(3, 3)


@pytest.mark.parametrize("ids", [[1, 2], [2, 3], [3]])
def test_a_page_table_too_short_to_count_from_zero_counts_from_the_first_field(
    ids: list[int],
) -> None:
    made = LegacyFile([node(one, f"f{one}", "int8") for one in ids], [0, 2, 5])
    assert read_legacy_metadata(source(made.finish())).pages.first_id == ids[0]


def test_a_page_table_with_pages_at_its_beginning_counts_from_the_first_field() -> None:
    data = counted_from_zero([2, 3], (3, 1))
    assert read_legacy_metadata(source(data)).pages.first_id == 2
