"""The array encodings of file version 2.0: one class per arm of ``ArrayEncoding``, one table.

Binaries and lists store where each value ends (``decode_ends``): ``ends[i]`` is the end of value
``i``; it begins where the one before ends, the first of a page at 0. A null has ``null_adjustment``
added to its end (which is above every real end): 'ab', null, 'c' with adjustment 4 are 2, 6, 3.

The set of arms is closed: an unknown one is refused. Limits: encodings nest at most ``MAX_DEPTH``
deep; ends never decrease, and what they point into is checked by the arm.
Source: the ``oneof`` of ``ArrayEncoding`` in lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings import base
from lance_nb.encodings.base import (
    VALUES_MAX,
    AllNull,
    Bytes,
    DataBlock,
    FixedWidth,
    Ints,
    PackedStruct,
    Rows,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.kernels import bitpack, fsst, lz4_zstd
from lance_nb.encodings.slicing import expand_ranges, gather_ranges, merged, places_in
from lance_nb.encodings.steps import (
    Region,
    Steps,
    aligned,
    read_all,
    read_bits,
    read_ranges,
    together,
)
from lance_nb.encodings.v2_0.base import (
    ArrayCodec,
    ArrayCodecs,
    ItemRanges,
    Mask,
    Page,
    Values,
    check_free,
    fixed_width,
    scaled,
)
from lance_nb.errors import NotSupportedError, describe_order
from lance_nb.value_classes import dataclass

MAX_DEPTH = 20

_VALUE_BYTES_MAX = 32
_SCHEMES = {"zstd": lz4_zstd.decompress_zstd, "lz4": lz4_zstd.decompress_lz4}
_STORED = ("", "none")
Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
Indices = np.ndarray[tuple[int], np.dtype[np.unsignedinteger[Any]]]
_ROW_BYTES_MAX = 1 << 32


class Constant:
    """Decode one value that stands in the page description, for every row.

    Layout: ``value`` is the little-endian form of the value (one byte for a bool). No buffers.
    Limits: fixed-width values of 1 to 32 bytes. No release is known to have written it to a 2.0
    file.
    Source: message ``Constant`` of lance.encodings.
    """

    def decode(
        self, encoding: encodings.Constant, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Return the value, to be repeated when it becomes Arrow."""
        size = len(encoding.value)
        if not 1 <= size <= _VALUE_BYTES_MAX:
            raise corrupt(f"a constant of 1 to {_VALUE_BYTES_MAX} bytes", f"{size} bytes")
        check_free(rows.num_rows)
        yield from ()
        value = FixedWidth(8 * size, 1, np.frombuffer(encoding.value, np.uint8))
        return Values(base.Constant(rows.num_rows, value))


class Flat:
    """Decode values stored back to back, or the same compressed as a whole.

    Layout: ``num_values * bits_per_value`` bits in one buffer; with one bit per value a bitmap,
    least significant bit first. With ``compression`` the whole buffer is one block: "zstd" (bare
    frame, or u64 size and frame) or "lz4" (u32 size and block); "none" and "" leave it as it is.
    Limits: ``bits_per_value`` is 1 or a multiple of 8; a compressed buffer is read whole.
    Not supported: other compression schemes.
    Source: message ``Flat`` of lance.encodings.
    """

    def decode(
        self, encoding: encodings.Flat, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read the bytes of the rows; all of the buffer where it is compressed."""
        bits = encoding.bits_per_value
        last = int(rows.stops[-1]) if rows.stops.size else 0
        if bits != 1 and (bits == 0 or bits % 8):
            raise corrupt("a flat width of 1 bit or of whole bytes", f"{bits} bits per value")
        if last * bits >= 1 << 60:
            raise corrupt(f"at most {VALUES_MAX} values", f"{last} values of {bits} bits")
        region = page.region(encoding.buffer)
        if encoding.HasField("compression") and encoding.compression.scheme not in _STORED:
            data = yield from _decompressed(region, encoding.compression.scheme)
            block = _whole(data, bits, last)
            taken = gather_ranges(block, rows.starts, rows.stops) if last else block
            return Values(taken)
        data = yield from _stored(region, bits, rows)
        return Values(FixedWidth(bits, rows.num_rows, data))


def _stored(region: Region, bits: int, rows: Rows) -> Steps[Bytes]:
    if bits == 1:
        bitmap = yield from read_bits(region, rows.starts, rows.stops)
        return bitmap
    width = bits // 8
    data = yield from read_ranges(region, rows.starts * width, rows.stops * width)
    return aligned(data, width)


def _decompressed(region: Region, scheme: str) -> Steps[Bytes]:
    if scheme not in _SCHEMES:
        raise NotSupportedError(f"flat buffers compressed with {scheme[:40]!r} are not supported")
    if not region.size_bytes:
        return np.zeros(0, np.uint8)
    packed = yield from read_all(region)
    start: Ints = np.zeros(1, np.int64)
    data, _ = _SCHEMES[scheme](packed, start, np.array([packed.size], np.int64))
    return data


def _whole(data: Bytes, bits: int, num_values: int) -> FixedWidth:
    """View the first values of a decompressed buffer."""
    needed = (num_values * bits + 7) // 8
    if data.size < needed:
        raise corrupt(f"{needed} bytes of decompressed values", f"{data.size} bytes")
    return FixedWidth(bits, num_values, data[:needed])


class Bitpacked:
    """Decode integers of a few bits, one after the other in a stream of bits.

    Layout: value ``i`` occupies the bits ``i * W .. i * W + W - 1`` of the buffer, least
    significant bit first (W = ``compressed_bits_per_value``). With ``signed`` the highest of them
    is the sign.
    Limits: 1 <= W <= T; T = ``uncompressed_bits_per_value`` is 8, 16, 32 or 64. Read whole.
    Source: message ``Bitpacked`` of lance.encodings (writers of 2024, behind a switch).
    """

    def decode(
        self, encoding: encodings.Bitpacked, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read the buffer and unpack the rows."""
        width, word = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
        if word not in {8, 16, 32, 64} or not 1 <= width <= word:
            raise corrupt("1 to T bits per value, T = 8, 16, 32 or 64", f"{width} of {word} bits")
        count = rows.num_rows
        if not count:
            return Values(FixedWidth(word, 0, np.zeros(0, np.uint8)))
        region = page.region(encoding.buffer)
        if region.size_bytes * 8 < int(rows.stops[-1]) * width:
            raise corrupt(
                f"{int(rows.stops[-1])} values of {width} bits", f"{region.size_bytes} bytes"
            )
        packed = yield from read_all(region)
        values = _unpack(packed, expand_ranges(rows.starts, rows.stops), width)
        if encoding.signed and width < 64:
            sign = np.uint64(1 << (width - 1))
            values = (values ^ sign) - sign  # wraps around: the ones above the sign bit
        narrow: np.ndarray[Any, Any] = values.astype(f"<u{word // 8}")
        return Values(FixedWidth(word, count, narrow.view(np.uint8)))


def _unpack(packed: Bytes, positions: Ints, width: int) -> Words:
    """Return the values at ``positions``, out of windows of 8 bytes that begin at their byte."""
    padded = np.append(packed, np.zeros(8, np.uint8))
    windows = np.ndarray(packed.shape, "<u8", padded, strides=(1,))
    bits = positions * width
    first = bits >> 3
    shift = (bits & 7).astype(np.uint64)
    values: Words = windows[first] >> shift
    if width > 57:  # may reach into a ninth byte
        spill = padded[first + 8].astype(np.uint64)
        # Two shifts, because a shift by 64 would be none.
        values |= (spill << np.uint64(1)) << (np.uint64(63) - shift)
    return values & np.uint64((1 << width) - 1)


class BitpackedForNonNeg:
    """Decode non-negative integers: blocks of 1024 values in FastLanes order.

    Layout: ``ceil(num_values / 1024)`` blocks of ``128 * W`` bytes (W =
    ``compressed_bits_per_value``), packed as in ``kernels.bitpack``; the last block is filled up
    with zeros.
    Limits: 1 <= W <= T; T = ``uncompressed_bits_per_value`` is 8, 16, 32 or 64.
    Source: message ``BitpackedForNonNeg`` of lance.encodings (unstable writers of 2024).
    """

    def decode(
        self, encoding: encodings.BitpackedForNonNeg, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read the blocks that hold the rows and pick the rows out of them."""
        width, word = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
        if word not in {8, 16, 32, 64} or not 1 <= width <= word:
            raise corrupt("1 to T bits per value, T = 8, 16, 32 or 64", f"{width} of {word} bits")
        count = rows.num_rows
        if not count:
            return Values(FixedWidth(word, 0, np.zeros(0, np.uint8)))
        blocks = merged(rows.starts // bitpack.VALUES, -(-rows.stops // bitpack.VALUES))
        size = bitpack.VALUES // 8 * width
        packed = yield from read_ranges(
            page.region(encoding.buffer), blocks.starts * size, blocks.stops * size
        )
        grid = np.empty((blocks.num_rows, bitpack.VALUES), f"<u{word // 8}")
        starts = np.arange(blocks.num_rows, dtype=np.int64) * size
        bitpack.unpack(aligned(packed, word // 8), starts, width, grid)
        positions = expand_ranges(rows.starts, rows.stops)
        numbers = expand_ranges(blocks.starts, blocks.stops)
        place = np.searchsorted(numbers, positions // bitpack.VALUES)
        values = grid[place, positions % bitpack.VALUES]
        return Values(FixedWidth(word, count, values.view(np.uint8)))


class Nullable:
    """Decode values and, if some are null, a bitmap of the valid ones.

    Layout: ``no_nulls``: the values. ``some_nulls``: ``validity`` (flat, one bit per value) and the
    values, null slots included. ``all_nulls``: nothing at all.
    Limits: nulls of the values themselves (binary) and of the bitmap add up.
    Source: message ``Nullable`` of lance.encodings.
    """

    def decode(
        self, encoding: encodings.Nullable, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode bitmap and values side by side."""
        match encoding.WhichOneof("nullability"):
            case "no_nulls":
                values = yield from codecs.decode(encoding.no_nulls.values, rows, page)
                return values
            case "some_nulls":
                some = encoding.some_nulls
                bitmap, values = yield from together(
                    [
                        codecs.decode(some.validity, rows, page),
                        codecs.decode(some.values, rows, page),
                    ]
                )
                return Values(values.block, _both(_mask(bitmap, rows), values.validity))
            case "all_nulls":
                check_free(rows.num_rows)
                return Values(AllNull(rows.num_rows))
        raise NotSupportedError("a page uses a kind of nullability that is not known")


def _mask(bitmap: Values, rows: Rows) -> Mask | None:
    bits = fixed_width(bitmap, 1, "a validity bitmap")
    mask = np.unpackbits(bits, count=rows.num_rows, bitorder="little").view(bool)
    return None if bool(mask.all()) else mask


def _both(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


class FixedSizeList:
    """Decode the items of all lists back to back, ``dimension`` per list.

    Layout: the items are an encoding of their own (with their own nulls), ``dimension`` times as
    long; nulls of the lists themselves are a ``nullable`` outside.
    Limits: ``dimension`` is at least 1.
    Source: message ``FixedSizeList`` of lance.encodings.
    """

    def decode(
        self, encoding: encodings.FixedSizeList, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the items of the rows."""
        if not encoding.dimension:
            raise corrupt("a fixed-size list of at least one item", "dimension 0")
        items = yield from codecs.decode(encoding.items, scaled(rows, encoding.dimension), page)
        if isinstance(items.block, ItemRanges):
            raise corrupt("plain items in a fixed-size list", "lists")
        validity = None
        if items.validity is not None:
            validity = np.packbits(items.validity, bitorder="little")
        elif isinstance(items.block, AllNull):
            validity = np.zeros((items.block.num_values + 7) // 8, np.uint8)
        return Values(base.FixedSizeList(encoding.dimension, rows.num_rows, items.block, validity))


class FixedSizeBinary:
    """Decode byte strings of variable type that all have one length.

    Layout: ``bytes`` holds ``byte_width`` bytes per value, as single bytes or as values of that
    width; null slots included (their nulls are a ``nullable`` outside).
    Limits: ``byte_width`` is at least 1.
    Source: message ``FixedSizeBinary`` of lance.encodings (unstable writers of 2024).
    """

    def decode(
        self, encoding: encodings.FixedSizeBinary, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the bytes of the rows and lay offsets over them."""
        width = encoding.byte_width
        if not width:
            raise corrupt("byte strings of at least one byte", "width 0")
        parts = scaled(rows, width)
        bits = _flat_bits(encoding.bytes)
        whole = bits == 8 * width
        decoded = yield from codecs.decode(encoding.bytes, rows if whole else parts, page)
        data = fixed_width(decoded, 8 * width if whole else 8, "bytes")
        offsets = np.arange(rows.num_rows + 1, dtype=np.int64) * width
        return Values(VariableWidth(rows.num_rows, offsets, data))


def _flat_bits(encoding: encodings.ArrayEncoding) -> int:
    """Return the bits per value where the bytes are flat, 0 where they are anything else."""
    for _ in range(MAX_DEPTH):
        match encoding.WhichOneof("array_encoding"):
            case "flat":
                return encoding.flat.bits_per_value
            case "nullable" if encoding.nullable.WhichOneof("nullability") == "no_nulls":
                encoding = encoding.nullable.no_nulls.values
            case _:
                return 0
    return 0


class Binary:
    """Decode byte strings of any length, as ends and bytes.

    Layout: ``indices`` are ends in the bytes (see ``decode_ends``), nulls have ``null_adjustment``
    added; ``bytes`` is an encoding of 8-bit values. Offset widths of the Arrow type do not matter.
    Source: message ``Binary`` of lance.encodings; verified against pylance 14.0.2.
    """

    def decode(
        self, encoding: encodings.Binary, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the ends, then the bytes that lie between them."""
        decoded, validity = yield from decode_ends(
            encoding.indices, encoding.null_adjustment, rows, page=page, codecs=codecs
        )
        offsets: Ints = np.zeros(rows.num_rows + 1, np.int64)
        np.cumsum(decoded.stops - decoded.starts, out=offsets[1:])
        data = np.zeros(0, np.uint8)
        if int(offsets[-1]):
            byte_rows = merged(decoded.starts, decoded.stops)
            content = yield from codecs.decode(encoding.bytes, byte_rows, page)
            data = fixed_width(content, 8, "bytes")
        return Values(VariableWidth(rows.num_rows, offsets, data), validity)


class Fsst:
    """Decode byte strings with the symbol table of their page.

    Layout: ``binary`` holds the codes as byte strings (with their nulls), ``symbol_table`` the
    symbols in the form that the compressive encoding of the same name has.
    Source: message ``Fsst`` of lance.encodings.
    """

    def decode(
        self, encoding: encodings.Fsst, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the codes, then the strings."""
        symbols = fsst.symbol_table(encoding.symbol_table)
        codes = yield from codecs.decode(encoding.binary, rows, page)
        block = codes.block
        if symbols is None or isinstance(block, AllNull):
            return codes
        if not isinstance(block, VariableWidth):
            raise corrupt("FSST codes of variable width", type(block).__name__)
        offsets, data = fsst.decode(block.data, block.offsets, symbols)
        return Values(VariableWidth(block.num_values, offsets, data), codes.validity)


class Dictionary:
    """Decode indices into the distinct values of a page.

    Layout: ``items`` are ``num_dictionary_items`` values, ``indices`` one unsigned number per row.
    A column of an Arrow dictionary type counts items from 0 and stores a null as the index of a
    null item. Any other column (strings with few different values) keeps index 0 for null: index
    ``k`` is item ``k - 1``.
    Limits: indices are 8 to 64 bits wide; the items are read whole.
    Source: message ``Dictionary`` of lance.encodings; verified against pylance 14.0.2.
    """

    def decode(
        self, encoding: encodings.Dictionary, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode both side by side; a null item makes its rows null."""
        count = encoding.num_dictionary_items
        zero: Ints = np.zeros(min(count, 1), np.int64)
        every = Rows(zero, zero + count)
        decoded, items = yield from together(
            [
                codecs.decode(encoding.indices, rows, page),
                codecs.decode(encoding.items, every, page),
            ]
        )
        if isinstance(items.block, ItemRanges):
            raise corrupt("plain items in a dictionary", "lists")
        indices = _unsigned(decoded)
        validity = decoded.validity
        if not page.keeps_dictionary:
            validity = _both(validity, indices != 0)
            indices = np.where(indices == 0, indices, indices - indices.dtype.type(1))
        if validity is not None and not bool(validity.any()):
            return Values(AllNull(rows.num_rows))
        if validity is not None:
            indices = np.where(validity, indices, indices.dtype.type(0))
        if indices.size and int(indices.max()) >= count:
            raise corrupt(f"dictionary indices below {count}", str(int(indices.max())))
        validity = _both(validity, _valid_items(items, indices))
        bits = indices.dtype.itemsize * 8
        block = base.Dictionary(
            rows.num_rows,
            FixedWidth(bits, rows.num_rows, np.ascontiguousarray(indices).view(np.uint8)),
            items.block,
        )
        return Values(block, validity)


def _unsigned(values: Values) -> Indices:
    block = values.block
    if not isinstance(block, FixedWidth) or block.bits_per_value not in {8, 16, 32, 64}:
        raise corrupt("dictionary indices of 8, 16, 32 or 64 bits", type(block).__name__)
    return block.data.view(f"<u{block.bits_per_value // 8}")


def _valid_items(items: Values, indices: Indices) -> Mask | None:
    if isinstance(items.block, AllNull):
        return np.zeros(indices.size, bool)
    return None if items.validity is None else items.validity[indices]


class List:
    """Decode where the items of each list end; the items themselves are the next column.

    Layout: ``offsets`` are ends in the page's ``num_items`` items (see ``decode_ends``), null lists
    have ``null_offset_adjustment`` added. Item positions restart at 0 with every page.
    Limits: an end is at most ``num_items``.
    Source: message ``List`` of lance.encodings; verified against pylance 14.0.2.
    """

    def decode(
        self, encoding: encodings.List, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the ends of the rows (and of the one before)."""
        items, validity = yield from decode_ends(
            encoding.offsets, encoding.null_offset_adjustment, rows, page=page, codecs=codecs
        )
        if items.stops.size and int(items.stops[-1]) > encoding.num_items:
            raise corrupt(f"ends up to {encoding.num_items} items", str(int(items.stops[-1])))
        return Values(items, validity)


class Struct:
    """Decode a number of rows, and nothing else: the fields are columns of their own.

    Layout: no buffers. Null structs cannot be stored in file version 2.0.
    Source: message ``SimpleStruct`` of lance.encodings.
    """

    def decode(
        self, encoding: encodings.SimpleStruct, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Return structs without fields."""
        check_free(rows.num_rows)
        yield from ()
        return Values(PackedStruct(rows.num_rows, ()))


class PackedStructs:
    """Decode the fields of each row side by side, row after row.

    Layout: one buffer; ``inner`` tells the width of each field: flat, or a fixed-size list of flat
    items, possibly inside ``nullable.no_nulls``. The buffers that ``inner`` names mean nothing.
    Limits: fields are whole bytes wide.
    Not supported: nulls, which no writer could store.
    Source: message ``PackedStruct`` of lance.encodings; verified against pylance 14.0.2.
    """

    def decode(
        self, encoding: encodings.PackedStruct, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read whole rows, then copy each field out of them."""
        shapes = [_shape(inner) for inner in encoding.inner]
        widths = [bits // 8 * math.prod(dims) for bits, dims in shapes]
        row_bytes = sum(widths)
        if not 0 < row_bytes < _ROW_BYTES_MAX:
            raise corrupt(f"packed rows of 1 to {_ROW_BYTES_MAX} bytes", f"{row_bytes} bytes")
        byte_rows = scaled(rows, row_bytes)
        region = page.region(encoding.buffer)
        data = yield from read_ranges(region, byte_rows.starts, byte_rows.stops)
        grid = data.reshape(rows.num_rows, row_bytes)
        children: list[DataBlock] = []
        position = 0
        for (bits, dims), width in zip(shapes, widths, strict=True):
            column = np.ascontiguousarray(grid[:, position : position + width]).ravel()
            children.append(_nested(column, bits, dims, rows.num_rows))
            position += width
        return Values(base.PackedStruct(rows.num_rows, tuple(children)))


def _shape(encoding: encodings.ArrayEncoding) -> tuple[int, list[int]]:
    """Return the bits of a flat field, and the dimensions of the lists around it, outer first."""
    dims: list[int] = []
    for _ in range(MAX_DEPTH):
        match encoding.WhichOneof("array_encoding"):
            case "flat":
                bits = encoding.flat.bits_per_value
                if bits == 0 or bits % 8:
                    raise NotSupportedError(f"packed struct fields of {bits} bits")
                return bits, dims
            case "fixed_size_list":
                dims.append(encoding.fixed_size_list.dimension)
                encoding = encoding.fixed_size_list.items
            case "nullable" if encoding.nullable.WhichOneof("nullability") == "no_nulls":
                encoding = encoding.nullable.no_nulls.values
            case arm:
                raise NotSupportedError(f"packed struct fields with encoding {arm!r}")
    raise NotSupportedError(f"packed struct fields nested over {MAX_DEPTH} deep")


def _nested(data: base.Bytes, bits: int, dims: list[int], num_rows: int) -> DataBlock:
    counts = [num_rows]
    for dimension in dims:
        counts.append(counts[-1] * dimension)
    block: DataBlock = FixedWidth(bits, counts[-1], data)
    for dimension, count in zip(reversed(dims), reversed(counts[:-1]), strict=True):
        if not dimension:
            raise corrupt("a fixed-size list of at least one item", "dimension 0")
        block = base.FixedSizeList(dimension, count, block, None)
    return block


ARMS: dict[str, ArrayCodec] = {
    "flat": Flat(),
    "nullable": Nullable(),
    "fixed_size_list": FixedSizeList(),
    "list": List(),
    "struct": Struct(),
    "binary": Binary(),
    "dictionary": Dictionary(),
    "fsst": Fsst(),
    "packed_struct": PackedStructs(),
    "bitpacked": Bitpacked(),
    "fixed_size_binary": FixedSizeBinary(),
    "bitpacked_for_non_neg": BitpackedForNonNeg(),
    "constant": Constant(),
}


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The ``ArrayCodecs`` handed to an arm; each level of nesting sees one with less depth left."""

    depth_left: int

    def decode(self, encoding: encodings.ArrayEncoding, rows: Rows, page: Page) -> Steps[Values]:
        """Decode rows of any array encoding."""
        if self.depth_left == 0:
            raise NotSupportedError(
                f"array encodings nested over {MAX_DEPTH} levels deep are not supported"
            )
        arm = encoding.WhichOneof("array_encoding")
        if arm is None:
            raise NotSupportedError(
                "a page uses an array encoding that this release of lance_nb does not know"
            )
        return ARMS[arm].decode(getattr(encoding, arm), rows, page, _LOOKUPS[self.depth_left - 1])


_LOOKUPS = tuple(_Lookup(depth) for depth in range(MAX_DEPTH + 1))

array_codecs: ArrayCodecs = _LOOKUPS[MAX_DEPTH]


def decode_ends(
    indices: encodings.ArrayEncoding,
    null_adjustment: int,
    rows: Rows,
    page: Page,
    codecs: ArrayCodecs,
) -> Steps[tuple[ItemRanges, Mask | None]]:
    """Return where each row begins and ends, and which rows are not null."""
    none = np.zeros(0, np.int64)
    if not rows.starts.size:
        return ItemRanges(none, none), None
    needed = merged(np.maximum(rows.starts - 1, 0), rows.stops)
    stored_ends = yield from codecs.decode(indices, needed, page)
    ends = _end_words(stored_ends)
    adjustment = np.uint64(null_adjustment)
    is_null = ends >= adjustment
    if bool(is_null.any()):
        ends = np.where(is_null, ends - adjustment, ends)
    if ends.size and int(ends.max()) > VALUES_MAX:
        raise corrupt(f"ends of values up to {VALUES_MAX}", str(int(ends.max())))
    signed = ends.astype(np.int64)
    if rows.starts.size == 1:  # a run of rows: each begins where the one before ends
        first = int(rows.starts[0]) - int(needed.starts[0])
        valid = ~is_null[first:]
        stops = signed[first:]
        starts = signed[:-1] if first else np.concatenate((np.zeros(1, np.int64), signed[:-1]))
    else:
        positions = expand_ranges(rows.starts, rows.stops)
        places = places_in(needed, positions)
        valid = ~is_null[places]
        stops = signed[places]
        starts = np.where(positions == 0, 0, signed[np.maximum(places - 1, 0)])
    if bool((starts > stops).any()) or bool((starts[1:] < stops[:-1]).any()):
        bounds = np.stack((starts, stops), axis=1).ravel()
        raise corrupt("ends of values that never go down", describe_order(bounds, repeats=True))
    return ItemRanges(starts, stops), None if bool(valid.all()) else valid


def _end_words(values: Values) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    block = values.block
    widths = (8, 16, 32, 64)
    if not isinstance(block, FixedWidth) or block.bits_per_value not in widths:
        raise corrupt("ends of values as whole numbers", type(block).__name__)
    if values.validity is not None:
        raise corrupt("ends of values without nulls", "nulls")
    words: np.ndarray[tuple[int], np.dtype[np.uint64]] = block.data.view(
        f"<u{block.bits_per_value // 8}"
    ).astype(np.uint64, copy=False)
    return words
