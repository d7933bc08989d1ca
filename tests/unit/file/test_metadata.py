"""Column metadata, the file descriptor and constant columns: protobuf in, checked values out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lance_nb._pb import encodings, encodings21, file, file2
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.metadata import (
    ARRAY_ENCODING_URL,
    PAGE_LAYOUT_URL,
    PageMetadata,
    describe_page,
    parse_column,
    parse_descriptor,
)

SIZE = 10_000


def encoding(url: str = PAGE_LAYOUT_URL, value: bytes = b"") -> file2.Encoding:
    wrapped = encodings.Any(type_url=url, value=value)
    direct = file2.Encoding.Direct(encoding=wrapped.SerializeToString())
    return file2.Encoding(direct=direct)


def column(*lengths: int) -> file2.ColumnMetadata:
    pages = [
        file2.Page(
            buffer_offsets=[64, 128], buffer_sizes=[8, 16], length=length, encoding=encoding()
        )
        for length in lengths
    ]
    return file2.ColumnMetadata(encoding=encoding("/lance.encodings.ColumnEncoding"), pages=pages)


def parsed(message: file2.ColumnMetadata, version: tuple[int, int] = (2, 2)):
    return parse_column(memoryview(message.SerializeToString()), version, SIZE)


def test_pages_and_their_last_rows() -> None:
    found = parsed(column(10, 5, 7))
    assert found.page_ends.tolist() == [10, 15, 22]
    assert found.num_rows == 22
    assert found.pages[1].buffer_offsets == (64, 128)
    assert found.pages[1].buffer_sizes == (8, 16)
    assert found.pages[1].encoding_url == PAGE_LAYOUT_URL


def test_a_column_without_pages_has_no_rows() -> None:
    assert parsed(column()).num_rows == 0


def too_many_offsets(message: file2.ColumnMetadata) -> None:
    message.pages[0].buffer_offsets.append(5)


def past_the_end(message: file2.ColumnMetadata) -> None:
    message.pages[0].buffer_sizes[1] = SIZE - 127


def past_everything(message: file2.ColumnMetadata) -> None:
    message.pages[0].buffer_offsets[0] = 2**64 - 1


def too_long(message: file2.ColumnMetadata) -> None:
    message.pages[0].length = 2**63


def too_long_together(message: file2.ColumnMetadata) -> None:
    for page in message.pages:
        page.length = 2**48


def no_column_encoding(message: file2.ColumnMetadata) -> None:
    message.ClearField("encoding")


def an_old_encoding(message: file2.ColumnMetadata) -> None:
    message.pages[0].encoding.CopyFrom(encoding(ARRAY_ENCODING_URL))


def no_any(message: file2.ColumnMetadata) -> None:
    message.pages[0].encoding.direct.encoding = b"\xff\xff\xff"


@pytest.mark.parametrize(
    "damage",
    [
        too_many_offsets,
        past_the_end,
        past_everything,
        too_long,
        too_long_together,
        no_column_encoding,
        an_old_encoding,
        no_any,
    ],
)
def test_damaged_metadata_is_refused(damage: Callable[[file2.ColumnMetadata], None]) -> None:
    message = column(10, 5)
    damage(message)
    with pytest.raises(CorruptFileError):
        parsed(message)


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_a_column_must_say_its_encoding_from_file_version_2_1_on(version: tuple[int, int]) -> None:
    message = column()
    no_column_encoding(message)
    with pytest.raises(CorruptFileError, match="a column encoding"):
        parsed(message, version)
    assert parsed(message, (2, 0)).num_rows == 0


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="ColumnMetadata"):
        parse_column(memoryview(b"\xff" * 20), (2, 2), SIZE)
    with pytest.raises(CorruptFileError, match="FileDescriptor"):
        parse_descriptor(memoryview(b"\xff" * 20))


def test_an_encoding_elsewhere_is_not_supported() -> None:
    message = column(10)
    message.pages[0].encoding.Clear()
    with pytest.raises(NotSupportedError, match="page's own message"):
        parsed(message)


def test_an_unknown_kind_of_encoding_is_named() -> None:
    page = PageMetadata((), (), 1, "/lance.encodings23.PlanarLayout", b"")
    with pytest.raises(NotSupportedError, match="PlanarLayout"):
        page.layout()


def test_the_layout_of_a_page() -> None:
    layout = encodings21.PageLayout(
        constant_layout=encodings21.ConstantLayout(inline_value=b"\1", layers=[1])
    )
    page = PageMetadata((), (), 1, PAGE_LAYOUT_URL, layout.SerializeToString())
    assert page.layout() == layout


def test_the_descriptor_says_rows_and_fields() -> None:
    message = file.FileDescriptor(length=7)
    message.schema.fields.add(name="a", id=3)
    schema, num_rows = parse_descriptor(memoryview(message.SerializeToString()))
    assert num_rows == 7
    assert [field.name for field in schema.fields] == ["a"]
    message.length = 2**49
    with pytest.raises(CorruptFileError, match="rows"):
        parse_descriptor(memoryview(message.SerializeToString()))


def test_a_page_may_end_where_the_file_does() -> None:
    message = column(10)
    message.pages[0].buffer_sizes[1] = SIZE - 128
    assert parsed(message).pages[0].buffer_sizes[1] == SIZE - 128
    message.pages[0].length = 2**48
    assert parsed(message).num_rows == 2**48


FLAT = encodings.ArrayEncoding(flat=encodings.Flat(bits_per_value=16)).SerializeToString()
CONSTANT = encodings21.PageLayout(
    constant_layout=encodings21.ConstantLayout(inline_value=b"\1", layers=[1])
).SerializeToString()


@pytest.mark.parametrize(
    ("url", "encoding", "found"),
    [
        (ARRAY_ENCODING_URL, FLAT, "flat[16]"),
        (PAGE_LAYOUT_URL, CONSTANT, "constant(inline)"),
        (PAGE_LAYOUT_URL, b"\xff", f"? ({PAGE_LAYOUT_URL})"),
        (ARRAY_ENCODING_URL, b"\xff", f"? ({ARRAY_ENCODING_URL})"),
        ("x" * 100, CONSTANT, f"? ({'x' * 80})"),
    ],
)
def test_a_page_is_described_or_named_by_its_url(url: str, encoding: bytes, found: str) -> None:
    assert describe_page(PageMetadata((), (), 1, url, encoding)) == found


NULLABLE, LIST = encodings21.REPDEF_NULLABLE_ITEM, encodings21.REPDEF_ALL_VALID_LIST
