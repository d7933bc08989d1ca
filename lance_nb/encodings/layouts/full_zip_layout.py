"""Full-zip pages: wide values stored one by one, each with its own levels.

Layout (page buffers)::

    0  entries            control word, then the value, for each of ``num_items`` entries
    1  repetition index   rows + 1 unsigned integers of one width: where each row starts, then the
                          total; only with repetition or variable-width values

A control word has 0, 1, 2 or 4 bytes and holds ``(rep << bits_def) | definition``. A fixed-width
value follows every visible entry (null leaves too); a variable-width value, as u32 or u64 length
and its bytes, follows visible valid entries only. Without levels a fixed-width page is the raw
array, which is written without copying.

Limits: levels below 2**16; values of whole bytes; at most 2**32 - 1 entries are written.
Source: message FullZipLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    Codecs,
    DecodedPage,
    Dictionary,
    FixedWidth,
    Ints,
    Levels,
    PackedStruct,
    PageBuffer,
    PageReader,
    PageShape,
    Rows,
    Span,
    VariableWidth,
    WholePage,
    corrupt,
)
from lance_nb.encodings.compress_base import (
    WIDE_BYTES,
    CompressedValues,
    Compressors,
    EncodedPage,
    LeafPage,
    PageLevels,
)
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.kernels.ranges import join_rows, starts_of
from lance_nb.encodings.kernels.zip_entries import EntryFormat, walk_entries
from lance_nb.encodings.repdef import (
    check_layers,
    check_levels,
    max_visible_definition,
    num_list_layers,
)
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.encodings.statistics import bits_per_value
from lance_nb.errors import describe_order
from lance_nb.value_classes import dataclass

_LEVEL_BITS_MAX = 16
_PRIORITY = 1
_PRIORITY_WIDE = 20
_PRIORITY_ASKED = 50
_ENTRIES_MAX = (1 << 32) - 1
Mask = npt.NDArray[np.bool_]


class FullZipLayout:
    """Wide values, structs with strings, and what no chunk can hold, entry by entry."""

    joined_bytes_max = 1 << 19  # copying more costs more than it saves

    def index_buffers(self, layout: encodings21.FullZipLayout, shape: PageShape) -> tuple[int, ...]:
        """Ask for the repetition index, where there is one."""
        needed = 2 if _needs_index(layout) else 1
        if len(shape.buffer_sizes) != needed:
            raise corrupt(f"{needed} full-zip page buffers", str(len(shape.buffer_sizes)))
        return (1,) if needed == 2 else ()

    def open(
        self,
        layout: encodings21.FullZipLayout,
        shape: PageShape,
        buffers: Mapping[int, Bytes],
        codecs: Codecs,
    ) -> PageReader:
        """Check the page against its index and return its reader."""
        index = _row_offsets(buffers[1], shape) if _needs_index(layout) else None
        return FullZipPage(layout, shape, codecs, index)

    def join_key(self, layout: encodings21.FullZipLayout) -> bytes | None:
        """Return the message without its counts, of a page without a row index."""
        if _needs_index(layout):
            return None
        alike = encodings21.FullZipLayout()
        alike.CopyFrom(layout)
        alike.ClearField("num_items")
        alike.ClearField("num_visible_items")
        return alike.SerializeToString(deterministic=True)

    def open_joined(
        self,
        pages: Sequence[WholePage],
        file_version: tuple[int, int],
        codecs: Codecs,
        file_bytes: Bytes | None = None,
    ) -> tuple[PageReader, Mapping[int, PageBuffer]]:
        """Lay the entries of the pages end to end."""
        shapes = [
            PageShape(page.num_rows, tuple(map(len, page.buffers)), file_version) for page in pages
        ]
        for shape in shapes:
            self.index_buffers(pages[0].layout, shape)
        each = FullZipPage(pages[0].layout, shapes[0], codecs, None).entry_bytes
        entries = []
        for page in pages:
            size = page.num_rows * each
            if size > len(page.buffers[0]):
                raise corrupt(f"{page.num_rows} values of {each} bytes",
                              f"{len(page.buffers[0])} bytes")  # fmt: skip
            entries.append(page.buffers[0][:size])
        data = np.frombuffer(b"".join(entries), np.uint8)
        whole = PageShape(sum(page.num_rows for page in pages), (data.size,), file_version)
        return FullZipPage(pages[0].layout, whole, codecs, None), {0: PageBuffer(data)}

    def nominate(self, page: LeafPage) -> int:
        """Take wide values, structs with strings, and what no other layout can hold."""
        block, options = page.measured.block, page.options
        if isinstance(block, AllNull | Dictionary) or (bits_per_value(block) or 8) % 8:
            return 0
        if isinstance(block, PackedStruct):
            # Structs of plain numbers only belong into chunks, whatever their width.
            is_plain = all(isinstance(child, FixedWidth) for child in block.children)
            return 0 if is_plain or not options.has_large_chunks else _PRIORITY_ASKED
        if options.structural == "fullzip":
            return _PRIORITY_ASKED
        return _PRIORITY_WIDE if page.measured.widest_bytes >= WIDE_BYTES else _PRIORITY

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Compress the values one by one and zip them with their levels."""
        options = page.options
        if options.compression == "lz4" and page.valid_slots is not None:
            options = replace(options, compression="zstd")  # LZ4 has no form for nulls here
        compressed = compressors.compress_values(page.measured, options)
        return zip_page(compressed, page.levels)


def _needs_index(layout: encodings21.FullZipLayout) -> bool:
    return bool(layout.bits_rep) or layout.WhichOneof("details") == "bits_per_offset"


def _row_offsets(index: Bytes, shape: PageShape) -> Bytes:
    """View the repetition index as unsigned integers; their order is checked where it matters."""
    count = shape.num_rows + 1
    width = index.size // count
    if width not in (1, 2, 4, 8) or width * count != index.size:
        raise corrupt(f"a row index of {count} equal integers", f"{index.size} bytes")
    return index.view(f"<u{width}")


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of the wanted rows: levels, and where each present value lies in ``data``."""

    rep: Levels | None
    definition: Levels | None
    value_starts: Ints
    value_sizes: Ints


class FullZipPage:
    """One opened full-zip page."""

    def __init__(
        self,
        layout: encodings21.FullZipLayout,
        shape: PageShape,
        codecs: Codecs,
        row_offsets: Bytes | None,
    ) -> None:
        self._layout = layout
        self._shape = shape
        self._codecs = codecs
        self._row_offsets = row_offsets
        self._layers = check_layers(layout.layers)
        if max(layout.bits_rep, layout.bits_def) > _LEVEL_BITS_MAX:
            raise corrupt("levels of at most 16 bits", f"{layout.bits_rep}/{layout.bits_def} bits")
        bits = layout.bits_rep + layout.bits_def
        self._control_bytes = 0 if not bits else 1 if bits <= 8 else 2 if bits <= 16 else 4
        self._fixed_bytes = self._fixed_value_bytes()
        if num_list_layers(self._layers) and not layout.bits_rep:
            raise corrupt("repetition levels on a page of lists", "none")
        if row_offsets is None:
            stride = self.entry_bytes
            if shape.num_rows * stride > shape.buffer_sizes[0]:
                raise corrupt(
                    f"{shape.num_rows} values of {stride} bytes", f"{shape.buffer_sizes[0]} bytes"
                )

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry with a value of fixed width."""
        return self._control_bytes + self._fixed_bytes

    def _fixed_value_bytes(self) -> int:
        layout = self._layout
        match layout.WhichOneof("details"):
            case "bits_per_value":
                if not layout.bits_per_value or layout.bits_per_value % 8:
                    raise corrupt("values of whole bytes", f"{layout.bits_per_value} bits")
                return layout.bits_per_value // 8
            case "bits_per_offset":
                if layout.bits_per_offset not in (32, 64):
                    raise corrupt("lengths of 32 or 64 bits", f"{layout.bits_per_offset} bits")
                return 0
        raise corrupt("a value width or a length width", "neither")

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Ask for the bytes of the rows, adjacent ones merged."""
        starts, stops = self._byte_ranges(rows)
        if not starts.size:
            return ()
        keep = np.concatenate(([True], starts[1:] != stops[:-1]))
        ends = np.concatenate((keep[1:], [True]))
        return [
            Span(0, int(a), int(b)) for a, b in zip(starts[keep], stops[ends], strict=True) if a < b
        ]

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Take the entries of the rows apart and decode their values."""
        if self._row_offsets is None:
            return self._decode_strided(rows, buffers)
        self._byte_ranges(rows)
        starts, stops = self._row_bounds(self._row_offsets, rows)
        sizes = stops - starts
        if bool((sizes < 0).any()):
            bounds = np.stack((starts, stops), axis=1).ravel()
            raise corrupt("an ascending row index", describe_order(bounds, repeats=True))
        buffer = buffers.get(0, PageBuffer(np.zeros(0, np.uint8)))
        data, begin = buffer.data, buffer.locate(starts)
        entries = self._entries(data, begin, begin + sizes)
        check_levels(entries.rep, entries.definition, self._layers)
        values = self._values(data, entries)
        return self._page(values, entries.rep, entries.definition)

    def _row_bounds(self, offsets: Bytes, rows: Rows) -> tuple[Ints, Ints]:
        """Return where each wanted row begins and ends."""
        if rows.starts.size == 1:
            bounds = offsets[int(rows.starts[0]) : int(rows.stops[0]) + 1].astype(np.int64)
            return bounds[:-1], bounds[1:]
        row_numbers = expand_ranges(rows.starts, rows.stops)
        return offsets[row_numbers].astype(np.int64), offsets[row_numbers + 1].astype(np.int64)

    def _byte_ranges(self, rows: Rows) -> tuple[Ints, Ints]:
        """Return the byte range of each range of rows. Raises CorruptFileError."""
        if self._row_offsets is None:
            stride = self._control_bytes + self._fixed_bytes
            return rows.starts * stride, rows.stops * stride
        starts = self._row_offsets[rows.starts].astype(np.int64)
        stops = self._row_offsets[rows.stops].astype(np.int64)
        size = self._shape.buffer_sizes[0]
        if starts.size and (
            bool((stops < starts).any())
            or bool((starts[1:] < stops[:-1]).any())
            or int(starts[0]) < 0
            or int(stops[-1]) > size
        ):
            bounds = np.stack((starts, stops), axis=1).ravel()
            actual = describe_order(bounds, repeats=True)
            raise corrupt(f"an ascending row index up to {size}", actual)
        return starts, stops

    def _decode_strided(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Fixed-width values without repetition: rows are equal steps."""
        stride = self._control_bytes + self._fixed_bytes
        data = buffers[0].data if rows.starts.size else np.zeros(0, np.uint8)
        if rows.starts.size == 1:
            first = int(buffers[0].locate(rows.starts * stride)[0])
            table = data[first : first + rows.num_rows * stride].reshape(-1, stride)
        elif rows.starts.size:
            row_numbers = expand_ranges(rows.starts, rows.stops)
            if buffers[0].span_starts is None:
                table = data[: data.size // stride * stride].reshape(-1, stride)[row_numbers]
            else:
                table = data.reshape(-1, stride)
        else:
            table = data.reshape(0, stride)
        definition = None
        if self._control_bytes:
            words = np.ascontiguousarray(table[:, : self._control_bytes])
            definition = words.ravel().view(f"<u{words.shape[1]}").astype(np.uint16)
            table = table[:, self._control_bytes :]
            check_levels(None, definition, self._layers)
        flat = np.ascontiguousarray(table).ravel()
        values = FixedWidth(self._fixed_bytes * 8, rows.num_rows, flat)
        return self._page(values, None, definition)

    def _entries(self, data: Bytes, starts: Ints, stops: Ints) -> _Entries:
        """Walk the entries of the rows and split their control words."""
        layout = self._layout
        shape = EntryFormat(
            self._control_bytes,
            layout.bits_def,
            max_visible_definition(self._layers),
            fixed_bytes=self._fixed_bytes,
            length_bytes=layout.bits_per_offset // 8,
        )
        walked = walk_entries(data, starts, stops, shape)
        mask = (1 << layout.bits_def) - 1
        rep = definition = None
        if self._control_bytes:
            if layout.bits_rep:
                rep = (walked.control >> layout.bits_def).astype(np.uint16)
            if layout.bits_def:
                definition = (walked.control & mask).astype(np.uint16)
        return _Entries(rep, definition, walked.value_starts, walked.value_sizes)

    def _values(self, data: Bytes, entries: _Entries) -> FixedWidth | VariableWidth:
        count = int(entries.value_starts.size)
        if self._fixed_bytes:
            taken = ranges.concatenate(data, entries.value_starts, entries.value_sizes)
            return FixedWidth(self._fixed_bytes * 8, count, taken)
        offsets = ranges.starts_of(entries.value_sizes)
        wide = self._layout.bits_per_offset == 64 or int(offsets[-1]) > 2**31 - 1
        gathered = ranges.concatenate(data, entries.value_starts, entries.value_sizes)
        return VariableWidth(count, offsets if wide else offsets.astype(np.int32), gathered)

    def _page(
        self, values: FixedWidth | VariableWidth, rep: Levels | None, definition: Levels | None
    ) -> DecodedPage:
        decoded = self._codecs.decode_values(self._layout.value_compression, values)
        if decoded.num_values != values.num_values:
            raise corrupt(f"{values.num_values} values", str(decoded.num_values))
        return DecodedPage(decoded, rep, definition, self._layers)


def zip_page(compressed: CompressedValues, levels: PageLevels) -> EncodedPage | None:
    """Zip values with their levels; None when there are too many entries."""
    if levels.num_entries > _ENTRIES_MAX:
        return None
    values = compressed.values
    control = _control_words(levels)
    message = encodings21.FullZipLayout(
        bits_rep=_bits(levels.repetition),
        bits_def=_bits(levels.definition),
        num_items=levels.num_entries,
        num_visible_items=values.num_values,
        value_compression=compressed.encoding,
        layers=levels.layer_enums,
    )
    if isinstance(values, FixedWidth):
        message.bits_per_value = values.bits_per_value
        data, starts = _zip_fixed(values, control, levels)
    else:
        message.bits_per_offset = 8 * values.offsets.dtype.itemsize
        data, starts = _zip_variable(values, control, levels)
    buffers = [data]
    if levels.repetition is not None or isinstance(values, VariableWidth):
        buffers.append(_row_index(starts, levels))
    layout = encodings21.PageLayout(full_zip_layout=message)
    return EncodedPage(layout, tuple(buffers), levels.num_rows)


def _bits(levels: npt.NDArray[np.uint16] | None) -> int:
    return int(levels.max()).bit_length() if levels is not None and levels.size else 0


def _control_words(levels: PageLevels) -> Bytes:
    """Return the control word of every entry as rows of 0, 1, 2 or 4 bytes."""
    bits_def = _bits(levels.definition)
    bits = _bits(levels.repetition) + bits_def
    width = 0 if not bits else 1 if bits <= 8 else 2 if bits <= 16 else 4
    if not width:
        return np.zeros((levels.num_entries, 0), np.uint8)
    words = np.zeros(levels.num_entries, np.uint32)
    if levels.repetition is not None:
        words |= levels.repetition.astype(np.uint32) << np.uint32(bits_def)
    if levels.definition is not None:
        words |= levels.definition
    return words.astype(f"<u{width}").view(np.uint8).reshape(-1, width)


def _zip_fixed(values: FixedWidth, control: Bytes, levels: PageLevels) -> tuple[Bytes, Ints]:
    """Return the entries, and where each begins, with the total as last item.

    Without control words nobody asks where: no row index is needed.
    """
    size, width = values.bits_per_value // 8, control.shape[1]
    visible = levels.visible
    if visible is None and not width:
        return values.data, starts_of(np.zeros(0, np.int64))
    if visible is None:
        starts = np.arange(levels.num_entries + 1, dtype=np.int64) * (size + width)
        out = memory.allocate(int(starts[-1])).reshape(-1, size + width)
        out[:, :width] = control
        out[:, width:] = values.data.reshape(-1, size)
        return out.ravel(), starts
    starts = starts_of(width + size * visible.astype(np.int64))
    flat = memory.allocate(int(starts[-1]))
    ranges.write_rows(flat, starts[:-1], control)
    ranges.write_rows(flat, starts[:-1][visible] + width, values.data.reshape(-1, size))
    return flat, starts


def _zip_variable(values: VariableWidth, control: Bytes, levels: PageLevels) -> tuple[Bytes, Ints]:
    """Return the entries, and where each begins; null leaves have no length and no bytes.

    What lies between two values (control words of entries without one, then control word and
    length of the next) is one *head*; Arrow joins heads and values pair by pair.
    """
    word = values.offsets.dtype.itemsize
    count, width = levels.num_entries, control.shape[1]
    filled = np.ones(count, np.bool_) if levels.definition is None else levels.definition == 0
    visible = levels.visible
    is_kept = filled if visible is None else filled[visible]
    lengths = np.diff(values.offsets)[is_kept]
    sizes = np.zeros(count, np.int64)
    sizes[filled] = lengths
    heads = memory.allocate(count * (width + word)).reshape(count, width + word)
    heads[:, :width] = control
    heads[:, width:] = sizes.astype(f"<u{word}").view(np.uint8).reshape(count, word)
    head_bytes = heads.ravel()
    if not bool(filled.all()):
        keep = np.ones((count, width + word), np.bool_)
        keep[~filled, width:] = False
        head_bytes = heads[keep]
    head_ends = starts_of(np.where(filled, width + word, width))
    ends = np.concatenate(([0], head_ends[1:][filled], head_ends[-1:]))
    data = join_rows(((ends, head_bytes), _values_with_end(values, is_kept, lengths)))
    return data, head_ends + starts_of(sizes)


def _values_with_end(values: VariableWidth, is_kept: Mask, lengths: Ints) -> tuple[Ints, Bytes]:
    """Return the kept values and an empty one behind them, without copying where none is left out.

    Bytes under a null are left out too.
    """
    ends = starts_of(lengths.astype(np.int64))
    data = values.data
    if int(ends[-1]) != int(values.offsets[-1]):
        starts = values.offsets[:-1][is_kept].astype(np.int64)
        data = ranges.concatenate(data, starts, lengths.astype(np.int64))
    return np.append(ends, ends[-1]), data


def _row_index(starts: Ints, levels: PageLevels) -> Bytes:
    """Return where each row begins and the total, in the narrowest integers that hold it."""
    total = int(starts[-1])
    if levels.repetition is not None:
        top = int(levels.repetition.max()) if levels.repetition.size else 1
        begins = np.flatnonzero(levels.repetition == top)
        starts = np.append(starts[begins], total)
    width = 1 if total < 1 << 8 else 2 if total < 1 << 16 else 4 if total < 1 << 32 else 8
    return starts.astype(f"<u{width}").view(np.uint8)
