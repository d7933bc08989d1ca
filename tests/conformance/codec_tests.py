"""What every codec must do, whatever the values: what was encoded is decoded again.

A test module subclasses ``CodecTests`` and says which metadata its fields carry; the values come
from ``tests.support.leaf_values``, the sizes lie around the borders of chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.page_encoder import EncodedPage, EncodingOptions
from tests.support.encoded_files import decode_column, encode_column, row_ranges
from tests.support.examples import SCALE
from tests.support.leaf_values import MAKERS, make

VERSIONS = ((2, 1), (2, 2))
ALL_SIZES = (1, 2, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025)
FEW_SIZES = (1, 129, 1024)
LARGE_SIZES = (2049, 4095, 4096, 4097, 10_000)  # every other for each version; a larger run has all
NULL_SHARES = (0.0, 0.05, 0.9)  # in turns, another for each size and version; a larger run has all


def options(metadata: Mapping[str, str], version: tuple[int, int]) -> EncodingOptions:
    """Return the options of a field with these ``lance-encoding:`` keys."""
    keys = {f"lance-encoding:{key}": value.encode() for key, value in metadata.items()}
    return EncodingOptions.from_metadata(keys, version)


def check_page(array: pa.Array, field_options: EncodingOptions) -> EncodedPage:
    """Encode a column and decode it, whole and in ranges; return the page."""
    version = field_options.file_version
    page = encode_column(array, field_options)
    assert page.num_rows == len(array)
    found = decode_column(page, array.type, version)
    found.validate(full=True)
    assert_same(found, array)
    ranges = row_ranges(len(array), seed=len(array))
    if ranges:
        wanted = pa.concat_arrays([array.slice(low, high - low) for low, high in ranges])
        assert_same(decode_column(page, array.type, version, ranges), wanted)
    return page


def assert_same(found: pa.Array, wanted: pa.Array) -> None:
    """Compare values; of dictionaries only what they stand for."""
    if pa.types.is_dictionary(wanted.type):
        assert found.type == wanted.type
        assert found.to_pylist() == wanted.to_pylist()
    else:
        assert found.equals(wanted)


def arms_of(encoding: pb.CompressiveEncoding) -> Iterator[str]:
    """Name the arms of an encoding, the outermost first."""
    arm = encoding.WhichOneof("compression")
    if arm is None:
        return
    yield arm
    inner = getattr(encoding, arm)
    for name in ("values", "offsets", "run_lengths"):
        if name in inner.DESCRIPTOR.fields_by_name:
            child = getattr(inner, name)
            if isinstance(child, pb.CompressiveEncoding):
                yield from arms_of(child)
    for field in getattr(inner, "fields", ()):
        yield from arms_of(field.value)


def page_arms(page: EncodedPage) -> set[str]:
    """Name the layout and all encodings of a page."""
    layout = page.layout.WhichOneof("layout")
    message = getattr(page.layout, layout)
    found = {layout}
    for name in ("rep_compression", "def_compression", "value_compression", "dictionary"):
        if name in message.DESCRIPTOR.fields_by_name and message.HasField(name):
            found |= set(arms_of(getattr(message, name)))
    return found


class CodecTests:
    """Round trips of every kind of values with the metadata of the subclass."""

    metadata: ClassVar[Mapping[str, str]] = {}
    sizes: ClassVar[tuple[int, ...]] = FEW_SIZES

    @pytest.mark.parametrize("version", VERSIONS, ids=str)
    @pytest.mark.parametrize("kind", MAKERS)
    def test_pages_come_back(self, kind: str, version: tuple[int, int]) -> None:
        for number, size in enumerate(self.sizes):
            share = 0.3 * (number % 2)
            check_page(make(kind, size, share), options(self.metadata, version))

    @pytest.mark.slow
    @pytest.mark.parametrize("version", VERSIONS, ids=str)
    @pytest.mark.parametrize("kind", MAKERS)
    def test_larger_pages_come_back(self, kind: str, version: tuple[int, int]) -> None:
        sizes = [*enumerate(LARGE_SIZES, version[1])]
        for number, size in sizes if SCALE > 1 else sizes[version[1] % 2 :: 2]:
            for share in NULL_SHARES if SCALE > 1 else (NULL_SHARES[number % 3],):
                check_page(make(kind, size, share), options(self.metadata, version))

    @pytest.mark.parametrize("kind", MAKERS)
    def test_slices_of_arrays_come_back(self, kind: str) -> None:
        array = make(kind, 400, 0.2)
        for start, count in ((1, 300), (13, 129), (399, 1)):
            check_page(array.slice(start, count), options(self.metadata, (2, 2)))

    @pytest.mark.parametrize("kind", MAKERS)
    def test_lists_with_null_and_empty_ones_come_back(self, kind: str) -> None:
        items = make(kind, 1100, 0.1)
        if pa.types.is_null(items.type):
            pytest.skip("lists of nothing")
        offsets = [0, 0, 3, 3, None, 4, *range(4, 1101, 17), 1100]
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
        for version in VERSIONS:
            check_page(lists, options(self.metadata, version))
