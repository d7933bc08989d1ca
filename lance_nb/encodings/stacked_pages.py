"""Pages of columns that are alike, encoded together: one pass for a type, not one for each column.

A row appended to a table, or a table of a thousand columns, is made of small pages, and a call of
numpy takes a microsecond whatever its size. So the values of columns of one type and length are
laid below each other, as rows of a matrix, and each decision is made for all rows in one pass. The
codecs see the rows that agree as the chunks of one page; the chunks are dealt out afterwards.

``page_encoder`` encodes what this module leaves: dictionaries, FSST, wide strings, pages without
any value, and from file version 2.2 on single values beside nulls.

Limits: ``ROWS_MAX`` values of a type in ``is_stackable``, without lists and encoding options. The
codec of definition levels is chosen for all pages of a stack together.
Source: bytes of ``page_encoder.encode_leaf_page``, which the tests compare with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb._pb import encodings21
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import Bytes, ChunkBuffer, DataBlock, FixedWidth, Ints, VariableWidth
from lance_nb.encodings.compress_base import (
    DICT_VALUES_MIN,
    PACKING_SAVING_MIN,
    RUN_CHUNK_VALUES,
    RUN_LENGTH_MAX,
    RUN_SHARE_MAX,
    TEXT_CHUNK_HOLDS,
    WIDE_BYTES,
    CompressedChunks,
    EncodedPage,
    LeafPage,
    PageLevels,
    strings_per_chunk,
    uniform_counts,
    values_per_chunk,
)
from lance_nb.encodings.distinct_values import Worth, numbered, pays_off
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels.ranges import starts_of
from lance_nb.encodings.mini_block_chunks import encode_chunks
from lance_nb.encodings.page_encoder import compressors
from lance_nb.encodings.registry import codec_of
from lance_nb.encodings.single_value import inline_bytes, scalar_buffer
from lance_nb.encodings.statistics import BLOCK, LAST_RESORT, Measured, Words, bit_lengths, savings
from lance_nb.errors import InternalError
from lance_nb.value_classes import dataclass

ROWS_MAX = 4095  # from 4096 values on, samples tell what is worth a dictionary
_STACK_BYTES = 1 << 22  # of the values of one pass, padded to whole blocks
_SMALL_BYTES = 128  # the least that a bit-packed chunk takes: up to here nothing is saved
_TEXT_BYTES = 1 << 15  # of a column, with offsets: from here on symbols of FSST may pay
_LOG_BITS = 15  # of a chunk word: log2 of its values, 0 for the last chunk of a page
_RAW_LEVEL_BITS = 16  # wider values are a constant page, beside raw levels, if all are the same
_FIXED = frozenset(
    getattr(pa.lib, f"Type_{name}")
    for name in (
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
        *("HALF_FLOAT", "FLOAT", "DOUBLE", "DATE32", "DATE64", "TIME32", "TIME64"),
        *("TIMESTAMP", "DURATION"),
    )
)
_TEXTS = frozenset((pa.lib.Type_STRING, pa.lib.Type_BINARY))
_STACKABLE = _FIXED | _TEXTS | {pa.lib.Type_BOOL}
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StackedPages:
    """Pages with one description: page ``i`` is that of the leaf with the number ``leaves[i]``.

    Its buffers are range ``i`` of each of ``buffers``.
    """

    leaves: Ints
    layout: encodings21.PageLayout
    buffers: tuple[ChunkBuffer, ...] = ()


def is_stackable(type_: pa.DataType) -> bool:
    """Tell whether columns of a type can be encoded together."""
    return type_.id in _STACKABLE


def encode_stack(
    leaves: Sequence[pa.Array], levels: Sequence[PageLevels], options: EncodingOptions
) -> Iterator[StackedPages]:
    """Encode the pages of leaves of one type, length and kind of levels.

    Item ``i`` of ``levels`` is that of leaf ``i``: all have the same layers, without lists, and all
    or none have definition levels. ``options`` are default ones. Leaves that no result names are
    left to ``page_encoder``.
    """
    count, type_ = len(leaves[0]), leaves[0].type
    if not 0 < count <= ROWS_MAX:
        return
    encode = _encode_texts if type_.id in _TEXTS else _encode_numbers
    if pa.types.is_boolean(type_):
        encode = _encode_bits
    width = type_.bit_width // 8 if type_.id in _FIXED else 8
    step = max(1, _STACK_BYTES // (width * -(-count // BLOCK) * BLOCK))
    for first in range(0, len(leaves), step):
        part = slice(first, first + step)
        for pages in encode(_Stack(leaves[part], levels[part], options)):
            yield replace(pages, leaves=pages.leaves + first)


class _Stack:
    """Leaves that are encoded in one pass, and what is common to their pages."""

    def __init__(
        self, leaves: Sequence[pa.Array], levels: Sequence[PageLevels], options: EncodingOptions
    ) -> None:
        self.leaves = leaves
        self.options = options
        self.count = len(leaves[0])
        self.definition: npt.NDArray[np.uint16] | None = None
        self._layers = levels[0].layers
        if levels[0].definition is not None:
            self.definition = np.array([level.definition for level in levels])

    @property
    def may_be_constant(self) -> bool:
        """Tell whether pages of one value are written here: they have no levels."""
        return self.definition is None and self.options.has_large_chunks

    @property
    def with_values(self) -> Mask:
        """Mark the leaves that are not all null."""
        if self.definition is None:
            return np.ones(len(self.leaves), np.bool_)
        has_value: Mask = (self.definition == 0).any(axis=1)
        return has_value

    def chunks(
        self, leaves: Mask, arm: str, block: DataBlock, counts: Ints
    ) -> Iterator[StackedPages]:
        """Let a codec cut the values of the marked leaves, each into chunks of ``counts`` values.

        ``block`` has the values back to back; what it has beyond ``counts`` is padding.
        """
        numbers = leaves.nonzero()[0]
        padding = block.num_values // numbers.size - self.count
        cut = np.tile(counts, numbers.size)
        padded = np.tile(np.append(counts[:-1], counts[-1] + padding), numbers.size)
        values = codec_of(arm).cut(Measured(block), padded)
        encoded = self._assembled(numbers, replace(values, num_values=cut))
        if encoded is None:
            return
        encoded.layout.mini_block_layout.num_items = self.count
        words = np.asarray(encoded.buffers[0]).view(
            "<u4" if self.options.has_large_chunks else "<u2"
        )
        table = words.reshape(numbers.size, counts.size)
        table[:, -1] &= ~np.array(_LOG_BITS, table.dtype)
        sizes = 8 * ((table >> 4).astype(np.int64) + 1).sum(axis=1)
        word_sizes = np.full(numbers.size, table[0].nbytes, np.int64)
        buffers = tuple(
            ChunkBuffer(np.asarray(data), starts_of(sizes_of)[:-1], sizes_of)
            for data, sizes_of in zip(encoded.buffers, (word_sizes, sizes), strict=True)
        )
        yield StackedPages(numbers, encoded.layout, buffers)

    def _assembled(self, numbers: Ints, values: CompressedChunks) -> EncodedPage | None:
        size = numbers.size * self.count
        levels = PageLevels(
            layers=self._layers,
            repetition=None,
            definition=None if self.definition is None else self.definition[numbers].ravel(),
            num_entries=size,
            max_visible_definition=0,
            num_rows=size,
        )
        block = FixedWidth(8, size, np.zeros(0, np.uint8))  # only its number of values matters
        page = LeafPage(Measured(block), levels, self.options)
        return encode_chunks(page, values, None, compressors)

    def constant(self, number: int, value: DataBlock) -> StackedPages:
        """Return the page of a leaf with one value."""
        message = encodings21.ConstantLayout(
            layers=cast("list[encodings21.RepDefLayer]", list(self._layers))
        )
        inline = inline_bytes(value)
        buffers: tuple[ChunkBuffer, ...] = ()
        if inline is None:
            data = scalar_buffer(value)
            buffers = (ChunkBuffer(data, np.zeros(1, np.int64), np.array([data.size])),)
        else:
            message.inline_value = inline
        layout = encodings21.PageLayout(constant_layout=message)
        return StackedPages(np.array([number]), layout, buffers)


def _encode_bits(stack: _Stack) -> Iterator[StackedPages]:
    """Encode booleans: each leaf begins with a byte of its own."""
    packed = _fixed(pa.concat_arrays(stack.leaves))
    bits = np.unpackbits(packed, count=stack.count * len(stack.leaves), bitorder="little")
    rows = np.packbits(bits.reshape(-1, stack.count), axis=1, bitorder="little")
    remaining = stack.with_values
    if stack.may_be_constant:
        all_true = np.packbits(np.ones(stack.count, np.bool_), bitorder="little")
        for value, row in enumerate((np.zeros_like(all_true), all_true)):
            same = (rows == row).all(axis=1)
            for number in same.nonzero()[0].tolist():
                yield stack.constant(number, FixedWidth(8, 1, np.array([value], np.uint8)))
            remaining &= ~same
    if remaining.any():
        data = rows[remaining].ravel()
        block = FixedWidth(1, 8 * data.size, data)
        yield from stack.chunks(remaining, "flat", block, np.array([stack.count]))


def _encode_numbers(stack: _Stack) -> Iterator[StackedPages]:
    """Encode integers, floats and times as constants, bit-packed, in runs or as they are."""
    count, size = stack.count, stack.leaves[0].type.bit_width // 8
    words: Words = _fixed(pa.concat_arrays(stack.leaves)).view(f"<u{size}").reshape(-1, count)
    remaining = stack.with_values
    same = (words == words[:, :1]).all(axis=1)
    if stack.may_be_constant:
        for number in same.nonzero()[0].tolist():
            value = FixedWidth(8 * size, 1, words[number, :1].view(np.uint8))
            yield stack.constant(number, value)
        remaining &= ~same
    packed = runs = np.zeros(len(words), np.bool_)
    if count * size > _SMALL_BYTES:
        widths = _block_widths(words)
        if stack.definition is not None and stack.options.has_large_chunks and size == 4:
            remaining &= (widths.max(axis=1) <= _RAW_LEVEL_BITS) | ~_one_valid_value(
                words, stack.definition
            )
        num_runs = 1 + np.count_nonzero(words[:, 1:] != words[:, :-1], axis=1)
        if size == 8 and count >= DICT_VALUES_MIN and stack.options.has_large_chunks:
            remaining &= ~_worth_a_dictionary(words, widths, num_runs)
        packed, runs = _choose(words, widths, num_runs)
    flat = uniform_counts(count, values_per_chunk(8 * size, stack.options))
    for chosen, arm, counts in (
        (remaining & ~packed & ~runs, "flat", flat),
        (remaining & packed, "inline_bitpacking", uniform_counts(count, BLOCK)),
        (remaining & runs, "rle", uniform_counts(count, RUN_CHUNK_VALUES)),
    ):
        if not chosen.any():
            continue
        values = words[chosen]
        if arm == "inline_bitpacking":
            blocks = np.zeros((len(values), counts.size * BLOCK), words.dtype)
            blocks[:, :count] = values
            values = blocks
        block = FixedWidth(8 * size, values.size, values.ravel().view(np.uint8))
        yield from stack.chunks(chosen, arm, block, counts)


def _fixed(leaf: pa.Array) -> Bytes:
    block = from_arrow(leaf)
    if not isinstance(block, FixedWidth):
        raise InternalError(f"{leaf.type} values of a stack are {type(block).__name__}")
    return block.data


def _block_widths(words: Words) -> Ints:
    """Return the bits that each run of 1024 values of each row needs."""
    starts = np.arange(0, words.shape[1], BLOCK)
    merged = np.bitwise_or.reduceat(words, starts, axis=1)
    return bit_lengths(merged.ravel()).reshape(merged.shape)


def _one_valid_value(words: Words, definition: npt.NDArray[np.uint16]) -> Mask:
    """Mark the rows whose valid values are all the same."""
    valid = definition == 0
    first = words[np.arange(len(words)), valid.argmax(axis=1)]
    same: Mask = ((words == first[:, None]) | ~valid).all(axis=1)
    return same


def _worth_a_dictionary(words: Words, widths: Ints, num_runs: Ints) -> Mask:
    """Mark the rows with so few different values that a dictionary pays."""
    count = words.shape[1]
    packed = widths.sum(axis=1) * BLOCK // 8
    plain = np.minimum(packed, (num_runs - 1) / (count - 1) * count * 9)
    ordered = np.sort(words, axis=1)
    num_items = 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)
    return pays_off(num_items, words.itemsize, count, plain)


def _choose(words: Words, widths: Ints, num_runs: Ints) -> tuple[Mask, Mask]:
    """Mark the rows whose bits are packed, and those that are stored as runs."""
    count, size = words.shape[1], words.itemsize
    plain = count * size
    by_width = savings(plain, widths.sum(axis=1) * (BLOCK // 8) + widths.shape[1] * size)
    by_width[by_width <= PACKING_SAVING_MIN] = 0
    by_runs = savings(plain, (num_runs + count // RUN_LENGTH_MAX) * (size + 1))
    by_runs[(num_runs - 1) / (count - 1) > RUN_SHARE_MAX] = 0
    runs = by_runs > np.maximum(by_width, LAST_RESORT)
    return (by_width > 0) & ~runs, runs


def _encode_texts(stack: _Stack) -> Iterator[StackedPages]:
    """Encode strings and bytes with 32-bit offsets as constants or as they are."""
    count = stack.count
    numbers = np.flatnonzero([leaf.nbytes < _TEXT_BYTES for leaf in stack.leaves])
    if not numbers.size:
        return
    block = _strings([stack.leaves[number] for number in numbers.tolist()])
    lengths = np.diff(block.offsets).reshape(-1, count)
    ends = block.offsets[::count]
    remaining = stack.with_values[numbers] & (lengths.max(axis=1) < WIDE_BYTES)
    if stack.may_be_constant:
        for row in (lengths == lengths[:, :1]).all(axis=1).nonzero()[0].tolist():
            text = block.data[ends[row] : ends[row + 1]].tobytes()
            size = int(lengths[row, 0])
            if size < WIDE_BYTES and text == text[:size] * count:
                pair = np.array([0, size], np.int32)
                value = VariableWidth(1, pair, np.frombuffer(text[:size], np.uint8))
                yield stack.constant(int(numbers[row]), value)
                remaining[row] = False
    if count >= DICT_VALUES_MIN:
        for row in remaining.nonzero()[0].tolist():
            offsets = block.offsets[row * count : (row + 1) * count + 1] - ends[row]
            own = VariableWidth(count, offsets, block.data[ends[row] : ends[row + 1]])
            plain = float(own.data.size + offsets.nbytes - offsets.itemsize)
            remaining[row] = numbered(own, Worth(count, plain, stack.options)) is None
    aim = stack.options.chunk_bytes
    per_chunk = strings_per_chunk(np.diff(ends) / count + block.offsets.itemsize, aim)
    for most in np.unique(per_chunk[remaining]).tolist():
        counts = uniform_counts(count, most)
        sizes = np.add.reduceat(lengths, np.cumsum(counts) - counts, axis=1)
        sizes += most * block.offsets.itemsize
        wide = (sizes > TEXT_CHUNK_HOLDS * aim) & (counts > most // 2)
        chosen = remaining & (per_chunk == most) & ~(wide.any(axis=1) & (most > 2))
        marked = np.zeros(len(stack.leaves), np.bool_)
        marked[numbers[chosen]] = True
        if chosen.any():
            part = _strings([stack.leaves[number] for number in numbers[chosen].tolist()])
            yield from stack.chunks(marked, "variable", part, counts)


def _strings(leaves: Sequence[pa.Array]) -> VariableWidth:
    """Return the strings of all leaves back to back."""
    block = from_arrow(pa.concat_arrays(leaves))
    if not isinstance(block, VariableWidth):
        raise InternalError(f"{leaves[0].type} values of a stack are {type(block).__name__}")
    return block
