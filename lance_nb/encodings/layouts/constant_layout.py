"""Constant pages: every visible value is the same, or null.

Layout (page buffers): none; or the scalar; or repetition and definition levels; or the scalar and
the levels, in that order. The scalar is inline in the message when it has at most 32 bytes. A
scalar buffer is ``u32 n``, n x ``u32 length``, then n buffers: the Arrow value buffers of a one-row
array (offsets of strings are u32 pairs, u64 pairs for the large types). Levels are raw u16 unless
``rep_compression`` / ``def_compression`` are set: beside a value they are written raw, without one
compressed from file version 2.2 on.

Limits: file version 2.1 only has the all-null form.
Source: message ConstantLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    AnyLevels,
    Bytes,
    Codecs,
    Constant,
    DataBlock,
    DecodedPage,
    FixedWidth,
    PageBuffer,
    PageReader,
    PageShape,
    Rows,
    Span,
    VariableWidth,
    WholePage,
    corrupt,
    single_chunk,
)
from lance_nb.encodings.compress_base import Compressors, EncodedPage, LeafPage, PageLevels
from lance_nb.encodings.packed_blocks import decode_levels
from lance_nb.encodings.repdef import (
    check_layers,
    check_levels,
    num_list_layers,
    visible_entries,
)
from lance_nb.encodings.single_value import inline_bytes, scalar_buffer, single_value
from lance_nb.encodings.slicing import expand_ranges, gather_ranges

_INLINE_BYTES_MAX = 32
_SCALAR_BUFFERS_MAX = 2
_PRIORITY = 100
_LEVEL_BITS = 16  # of a raw level: beside them, narrow values are smaller when they are packed
_SMALL_WITH_LEVELS = (1, 8, 16, 64, 128)  # bits: packed, or a dictionary of one item


class ConstantLayout:
    """Pages of one value, or of none: all is small, so every buffer is an index buffer."""

    joined_bytes_max = 0  # a value and levels in buffers differ from page to page

    def index_buffers(
        self, layout: encodings21.ConstantLayout, shape: PageShape
    ) -> tuple[int, ...]:
        """Scalar and levels are read before rows can be cut."""
        if len(shape.buffer_sizes) > 3:
            raise corrupt("at most 3 constant page buffers", str(len(shape.buffer_sizes)))
        return tuple(range(len(shape.buffer_sizes)))

    def open(
        self,
        layout: encodings21.ConstantLayout,
        shape: PageShape,
        buffers: Mapping[int, Bytes],
        codecs: Codecs,
    ) -> PageReader:
        """Read scalar and levels, check them against the page's rows, return the reader."""
        layers = check_layers(layout.layers)
        count = len(shape.buffer_sizes)
        scalar: DataBlock | None = None
        if layout.HasField("inline_value"):
            scalar = _inline(layout.inline_value)
            if count not in (0, 2):
                raise corrupt("no scalar buffer beside an inline value", f"{count} buffers")
        elif count in (1, 3):
            scalar = _scalar_buffer(buffers[0])
        if scalar is not None and shape.file_version < (2, 2):
            raise corrupt("an all-null constant page in a 2.1 file", "a value")
        rep = definition = None
        if count >= 2:
            rep = _levels(buffers[count - 2], layout, "rep", codecs)
            definition = _levels(buffers[count - 1], layout, "def", codecs)
        check_levels(rep, definition, layers)
        return ConstantPage(shape.num_rows, layers, scalar, (rep, definition))

    def join_key(self, layout: encodings21.ConstantLayout) -> bytes | None:
        """Return the message; of an inline value, its size."""
        if not layout.HasField("inline_value"):
            return bytes(layout.SerializeToString(deterministic=True))
        alike = encodings21.ConstantLayout()
        alike.CopyFrom(layout)
        alike.inline_value = bytes(len(layout.inline_value))
        return bytes(alike.SerializeToString(deterministic=True))

    def open_joined(
        self,
        pages: Sequence[WholePage],
        file_version: tuple[int, int],
        codecs: Codecs,
        file_bytes: Bytes | None = None,
    ) -> tuple[PageReader, Mapping[int, PageBuffer]]:
        """Repeat the value of each page for its rows."""
        layout = pages[0].layout
        shape = PageShape(
            sum(page.num_rows for page in pages), tuple(map(len, pages[0].buffers)), file_version
        )
        if any(len(page.buffers) != len(pages[0].buffers) for page in pages):
            counts = sorted({len(page.buffers) for page in pages})
            raise corrupt("as many buffers on every page", " and ".join(map(str, counts[:4])))
        empty = {number: np.zeros(0, np.uint8) for number in range(len(pages[0].buffers))}
        first = self.open(layout, shape, empty, codecs)
        values = [page.layout.inline_value for page in pages]
        if not layout.HasField("inline_value") or values.count(values[0]) == len(values):
            return first, {}
        width = len(layout.inline_value)
        stored = np.frombuffer(b"".join(values), np.uint8).reshape(-1, width)
        repeated = np.repeat(stored, [page.num_rows for page in pages], axis=0)
        block = FixedWidth(8 * width, shape.num_rows, repeated.ravel())
        return _RepeatedPages(block, check_layers(layout.layers)), {}

    def nominate(self, page: LeafPage) -> int:
        """Take pages without any value, and those that may have a single one."""
        return _PRIORITY * (isinstance(page.measured.block, AllNull) or _may_have_one(page))

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Write the value, and the levels where the layers do not say everything."""
        levels = page.levels
        message = encodings21.ConstantLayout(layers=levels.layer_enums)
        if isinstance(page.measured.block, AllNull):
            buffers = _all_null_levels(page, message, compressors)
        else:
            value = single_value(page.measured.block, page.valid_slots)
            if value is None:
                return None
            buffers = _raw_levels(levels)
            inline = inline_bytes(value)
            if inline is None:
                buffers.insert(0, scalar_buffer(value))
            else:
                message.inline_value = inline
        layout = encodings21.PageLayout(constant_layout=message)
        return EncodedPage(layout, tuple(buffers), levels.num_rows)


def _inline(value: bytes) -> FixedWidth:
    if not value or len(value) > _INLINE_BYTES_MAX:
        raise corrupt(f"an inline value of 1 to {_INLINE_BYTES_MAX} bytes", f"{len(value)} bytes")
    return FixedWidth(8 * len(value), 1, np.frombuffer(value, np.uint8))


def _scalar_buffer(buffer: Bytes) -> DataBlock:
    """Take the Arrow buffers of a one-row array apart."""
    if buffer.size < 4:
        raise corrupt("a scalar buffer of at least 4 bytes", f"{buffer.size} bytes")
    count = int(buffer[:4].view("<u4")[0])
    if not 1 <= count <= _SCALAR_BUFFERS_MAX or buffer.size < 4 + 4 * count:
        raise corrupt(f"1 or {_SCALAR_BUFFERS_MAX} scalar buffers", str(count))
    lengths = buffer[4 : 4 + 4 * count].view("<u4").astype(np.int64)
    start = 4 + 4 * count
    if start + int(lengths.sum()) > buffer.size:
        raise corrupt(f"{int(lengths.sum())} bytes of scalar", f"{buffer.size - start} bytes")
    first = buffer[start : start + int(lengths[0])]
    if count == 1:
        return FixedWidth(8 * first.size, 1, first)
    data = buffer[start + first.size : start + int(lengths.sum())]
    if first.size not in (8, 16):
        raise corrupt("a pair of offsets", f"{first.size} bytes")
    offsets = np.ascontiguousarray(first).view("<i4" if first.size == 8 else "<i8")
    if offsets[0] or int(offsets[1]) != data.size:
        raise corrupt(f"offsets 0 and {data.size}", f"{int(offsets[0])} and {int(offsets[1])}")
    return VariableWidth(1, offsets, data)


def _levels(
    buffer: Bytes, layout: encodings21.ConstantLayout, name: str, codecs: Codecs
) -> AnyLevels | None:
    if not buffer.size:
        return None
    if not layout.HasField(f"{name}_compression"):
        if buffer.size % 2:
            raise corrupt("16-bit levels", f"{buffer.size} bytes")
        return buffer.view("<u2")
    count = getattr(layout, f"num_{name}_values")
    blocks = single_chunk(count, buffer)
    return decode_levels(getattr(layout, f"{name}_compression"), blocks, codecs)


class ConstantPage:
    """One opened constant page. Rows without levels cost nothing until they are shown."""

    def __init__(
        self,
        num_rows: int,
        layers: tuple[int, ...],
        scalar: DataBlock | None,
        levels: tuple[AnyLevels | None, AnyLevels | None],
    ) -> None:
        self._num_rows = num_rows
        self._layers = layers
        self._scalar = scalar
        self._rep, self._definition = levels
        self._row_starts = None
        if num_list_layers(layers):
            if self._rep is None:
                if num_rows:
                    raise corrupt("repetition levels on a page of lists", "none")
                self._rep = np.zeros(0, np.uint16)
            self._row_starts = np.flatnonzero(self._rep == num_list_layers(layers))
            if self._rep.size and (not self._row_starts.size or self._row_starts[0]):
                raise corrupt("a page that begins with a new row", f"level {int(self._rep[0])}")
            num_rows_stored = int(self._row_starts.size)
        else:
            num_rows_stored = num_rows if self._definition is None else int(self._definition.size)
        if num_rows_stored != num_rows:
            raise corrupt(f"levels for {num_rows} rows", f"{num_rows_stored} rows")
        if (
            self._rep is not None
            and self._definition is not None
            and self._rep.size != self._definition.size
        ):
            raise corrupt(f"{self._rep.size} definition levels", f"{self._definition.size}")

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Nothing is left to read."""
        return ()

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Cut the levels of the rows; the value is repeated only when it becomes Arrow."""
        if self._row_starts is None:
            definition = self._definition
            if definition is not None:
                definition = definition[expand_ranges(rows.starts, rows.stops)]
            return self._page(rows.num_rows, None, definition)
        bounds = np.append(self._row_starts, 0 if self._rep is None else self._rep.size)
        entries = expand_ranges(bounds[rows.starts], bounds[rows.stops])
        rep = None if self._rep is None else self._rep[entries]
        definition = None if self._definition is None else self._definition[entries]
        visible = visible_entries(definition, self._layers)
        count = int(entries.size) if visible is None else int(visible.sum())
        return self._page(count, rep, definition)

    def _page(self, count: int, rep: AnyLevels | None, definition: AnyLevels | None) -> DecodedPage:
        values = AllNull(count) if self._scalar is None else Constant(count, self._scalar)
        return DecodedPage(values, rep, definition, self._layers)


class _RepeatedPages:
    """Joined constant pages of different values, without levels."""

    def __init__(self, values: FixedWidth, layers: tuple[int, ...]) -> None:
        if num_list_layers(layers):
            raise corrupt("repetition levels on a page of lists", "none")
        self._values = values
        self._layers = layers

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Nothing is left to read."""
        return ()

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Cut the rows."""
        values: DataBlock = self._values
        if rows.num_rows != self._values.num_values:
            values = gather_ranges(values, rows.starts, rows.stops)
        return DecodedPage(values, None, None, self._layers)


def _may_have_one(page: LeafPage) -> bool:
    """Tell whether a single value is worth looking for: beside a value levels stay raw."""
    block, options = page.measured.block, page.options
    if not options.has_large_chunks or options.structural is not None:
        return False
    if page.levels.repetition is None and page.levels.definition is None:
        return True
    if not isinstance(block, FixedWidth) or block.bits_per_value in _SMALL_WITH_LEVELS:
        return False
    widths = page.measured.block_widths
    return widths is None or int(widths.max(initial=0)) > _LEVEL_BITS


def _raw_levels(levels: PageLevels) -> list[Bytes]:
    """Return repetition and definition buffers, none when the page has no levels at all."""
    if levels.repetition is None and levels.definition is None:
        return []
    empty = np.zeros(0, np.uint8)
    level_arrays = (levels.repetition, levels.definition)
    return [
        empty if level_array is None else level_array.view(np.uint8) for level_array in level_arrays
    ]


def _all_null_levels(
    page: LeafPage, message: encodings21.ConstantLayout, compressors: Compressors
) -> list[Bytes]:
    """Return the level buffers of a page without values, compressed from file version 2.2 on."""
    levels = page.levels
    if levels.layers == (encodings21.REPDEF_NULLABLE_ITEM,):
        return []
    buffers = _raw_levels(levels)
    if not page.options.has_large_chunks:
        return buffers
    for number, name in enumerate(("rep", "def")[: len(buffers)]):
        count = buffers[number].size // 2
        if not count:
            continue
        compressed = compressors.compress_blocks(
            FixedWidth(16, count, buffers[number]), np.array([count]), page.options.for_levels
        )
        getattr(message, f"{name}_compression").CopyFrom(compressed.encoding)
        setattr(message, f"num_{name}_values", count)
        whole = compressed.blocks.joined()
        first, size = int(whole.starts[0]), int(whole.sizes[0])
        buffers[number] = whole.data[first : first + size]
    return buffers
