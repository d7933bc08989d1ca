"""One opened mini-block page: from wanted rows to values and levels.

Whole chunks are decoded and cut where many rows are wanted; single values are fetched without
decoding their chunks where few are and the encoding allows it. Small neighbouring pages of one
column that are described alike can be joined: their chunks are decoded as those of one page.

Layout: see ``layouts/mini_block_layout``.
Source: message MiniBlockLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AnyLevels,
    ChunkBuffer,
    Chunks,
    Codecs,
    DataBlock,
    DecodedPage,
    Dictionary,
    FixedWidth,
    Ints,
    PageBuffer,
    PageShape,
    Rows,
    Span,
    ValuePlaces,
    corrupt,
)
from lance_nb.encodings.mini_block_chunks import (
    PageItems,
    PageParts,
    ParsedChunks,
    check_joints,
    chunks_of,
    flat_positions,
    join_parts,
    no_chunks,
    number_rows,
    parse_chunks,
    runs_of,
    value_runs,
)
from lance_nb.encodings.packed_blocks import decode_levels, pick_levels
from lance_nb.encodings.repdef import (
    check_layers,
    check_levels,
    num_list_layers,
    visible_entries,
)
from lance_nb.encodings.slicing import expand_ranges, gather_ranges
from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

_WARM = 2  # times that single values have been fetched
_JOINED_VALUES_MAX = 1 << 18  # of a page: larger ones gain nothing from being joined
_FEW_VALUES = 4096  # of all chunks: so many are decoded as quickly as some of them are fetched
SPARSE_SHARE = 8  # values are fetched one by one when at most one in eight is wanted


@dataclass(frozen=True, slots=True)
class _LevelRun:
    rep: AnyLevels | None
    definition: AnyLevels | None
    num_levels: Ints


def join_key(layout: encodings21.MiniBlockLayout) -> bytes | None:
    """Describe what pages must share to be joined; None if the page gains nothing by it."""
    if not 0 < layout.num_items <= _JOINED_VALUES_MAX:
        return None
    alike = encodings21.MiniBlockLayout()
    alike.CopyFrom(layout)
    alike.ClearField("num_items")
    alike.ClearField("num_dictionary_items")
    if alike.value_compression.HasField("fsst"):
        alike.value_compression.fsst.ClearField("symbol_table")
    return alike.SerializeToString(deterministic=True)


class MiniBlockPage:
    """One opened mini-block page."""

    def __init__(
        self,
        layout: encodings21.MiniBlockLayout,
        shape: PageShape,
        codecs: Codecs,
        parts: PageParts,
    ) -> None:
        self._layout = layout
        self._shape = shape
        self._codecs = codecs
        self.parts = parts
        self._table = parts.table
        self._rows = parts.rows
        self._items = parts.items
        self._values = ChunkValues(layout.value_compression, codecs, parts.items, parts.page_items)
        self._layers = check_layers(layout.layers)
        self._num_value_buffers = codecs.num_buffers(layout.value_compression)
        if layout.num_buffers != self._num_value_buffers:
            raise corrupt(
                f"{self._num_value_buffers} value buffers per chunk", str(layout.num_buffers)
            )
        if num_list_layers(self._layers) and parts.rows is None:
            raise corrupt("a repetition index on a page of lists", "none")
        self._parsed: ParsedChunks | None = None
        self._num_fetches = 0
        self._can_gather = parts.rows is None and codecs.can_gather(layout.value_compression)

    @property
    def num_rows(self) -> int:
        """Rows of the page."""
        return self._shape.num_rows

    @property
    def num_values(self) -> int:
        """Leaf values of the page."""
        return int(self._layout.num_items)

    @cached_property
    def join_key(self) -> bytes | None:
        """Describe what pages must share to be joined with this one; None if it stands alone."""
        return join_key(self._layout) if self._items is None and self.num_rows else None

    @cached_property
    def _value_begins(self) -> Ints:
        return self._table.value_ends - self._table.num_values

    def joined(self, other_pages: Sequence[tuple[MiniBlockPage, int]]) -> MiniBlockPage:
        """Append pages of an equal ``join_key``, with the bytes from our chunks to theirs."""
        pages = [self, *(page for page, _ in other_pages)]
        counts = [page.num_rows for page in pages]
        shifts = [0, *(shift for _, shift in other_pages)]
        layouts = [page._layout for page in pages]  # noqa: SLF001
        parts = join_parts([page.parts for page in pages], layouts, counts, shifts)
        shape = PageShape(sum(counts), (), self._shape.file_version)
        return MiniBlockPage(self._layout, shape, self._codecs, parts)

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Ask for the runs of chunks that hold the rows."""
        chunks = self._chunks_of(rows)
        if not chunks.size:
            return ()
        return runs_of(self._table, chunks)

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Decode the chunks that hold the rows and cut out the rows."""
        num_rows = rows.num_rows
        if num_rows == self._shape.num_rows and num_rows and self._table.starts.size:
            return self._decode_whole(buffers[1])
        if self._can_gather and 2 * rows.stops.size >= num_rows > 0:  # nearly all are single rows
            single = rows.stops.size == num_rows
            row_numbers = rows.starts if single else expand_ranges(rows.starts, rows.stops)
            owners = self._table.value_ends.searchsorted(row_numbers, side="right")
            if self._is_sparse(owners):
                return self._fetch(row_numbers, owners, buffers[1])
        chunks = self._chunks_of(rows)
        if not chunks.size:
            return self._decode_nothing()
        parsed = parse_chunks(self._layout, self._table.part(chunks), buffers[1])
        levels = self._levels(parsed)
        if self._rows is None:
            return self._cut_flat(rows, chunks, parsed.values, levels.definition)
        return self._cut_nested(rows, chunks, parsed.values, levels)

    def _decode_whole(self, buffer: PageBuffer) -> DecodedPage:
        """Decode all rows: nothing to cut. They are counted when the levels are unravelled."""
        parsed = self._parsed
        if parsed is None or buffer.span_starts is not None:
            parsed = parse_chunks(self._layout, self._table, buffer)
            if buffer.span_starts is None:
                self._parsed = parsed
        levels = self._levels(parsed)
        if self._rows is not None:
            if levels.rep is None:
                raise corrupt("repetition levels on a page of lists", "none")
            firsts = levels.rep == num_list_layers(self._layers)
            check_joints(self.parts, firsts, levels.num_levels)
        values = self._values.whole(parsed.values)
        return DecodedPage(values, levels.rep, levels.definition, self._layers)

    def _levels(self, parsed: ParsedChunks) -> _LevelRun:
        rep = self._decode_levels("rep_compression", parsed.rep, parsed.num_levels)
        definition = self._decode_levels("def_compression", parsed.definition, parsed.num_levels)
        check_levels(rep, definition, self._layers)
        return _LevelRun(rep, definition, parsed.num_levels)

    def _is_sparse(self, owners: Ints) -> bool:
        """Tell whether single rows are far apart; ``owners`` are their chunks."""
        few = int(self._table.num_values[owners[0]])
        if owners.size * SPARSE_SHARE <= few:
            return True
        touched = 1 + int(np.count_nonzero(owners[1:] != owners[:-1]))
        return owners.size * SPARSE_SHARE <= touched * few

    def _fetch(self, positions: Ints, owners: Ints, buffer: PageBuffer) -> DecodedPage:
        """Fetch single values; ``owners`` are their chunks, ascending, with repeats."""
        inside = positions - self._value_begins.take(owners)
        parsed = self._all_parsed(buffer)
        numbers = owners
        if parsed is None:
            parsed = parse_chunks(self._layout, self._table.part(owners), buffer)
            numbers = np.arange(owners.size)
        request = ValuePlaces(numbers, inside, vouches=True)
        values = self._values.single(parsed.values, request)
        definition = None
        if parsed.definition is not None:
            definition = pick_levels(
                self._layout.def_compression,
                Chunks((parsed.definition,), parsed.num_levels),
                request,
                owners=owners,
                codecs=self._codecs,
            )
            check_levels(None, definition, self._layers)
        return DecodedPage(values, None, definition, self._layers)

    def _all_parsed(self, buffer: PageBuffer) -> ParsedChunks | None:
        """Return the headers of all chunks, read when single values are fetched once more.

        The first time, only the chunks that are needed are looked at: the others may not be in
        memory. None then, for a page that is not whole, and where some chunk is damaged: that is
        no matter to those who do not want it.
        """
        if buffer.span_starts is not None:
            return None
        self._num_fetches += 1
        if self._num_fetches == _WARM:
            with suppress(CorruptFileError):
                self._parsed = parse_chunks(self._layout, self._table, buffer)
        return self._parsed

    def _decode_nothing(self) -> DecodedPage:
        none = no_chunks(self._num_value_buffers)
        values = self._values.whole(none)
        empty = np.zeros(0, np.uint16)
        rep = empty if self._layout.HasField("rep_compression") else None
        return DecodedPage(values, rep, None, self._layers)

    def _chunks_of(self, rows: Rows) -> Ints:
        return chunks_of(self._table, self._rows, rows)

    def _decode_levels(
        self, name: str, buffer: ChunkBuffer | None, num_levels: Ints
    ) -> AnyLevels | None:
        if buffer is None:
            return None
        blocks = Chunks((buffer,), num_levels)
        return decode_levels(getattr(self._layout, name), blocks, self._codecs)

    def _cut_flat(
        self, rows: Rows, chunks: Ints, values: Chunks, definition: AnyLevels | None
    ) -> DecodedPage:
        """Without repetition one row is one value: translate rows into decoded positions."""
        starts = flat_positions(self._table, chunks, rows)
        stops = starts + (rows.stops - rows.starts)
        return DecodedPage(
            self._values.ranges(values, starts, stops),
            None,
            _cut_levels(definition, starts, stops),
            self._layers,
        )

    def _cut_nested(
        self, rows: Rows, chunks: Ints, values: Chunks, levels: _LevelRun
    ) -> DecodedPage:
        """With repetition a row is a run of entries: number the rows, then cut."""
        rep, definition = levels.rep, levels.definition
        if rep is None or self._rows is None:
            raise corrupt("repetition levels on a page of lists", "none")
        begins = rep == num_list_layers(self._layers)
        check_joints(self.parts, begins, levels.num_levels, chunks)
        row_of_entry = number_rows(self._rows, chunks, begins, levels.num_levels)
        starts = np.searchsorted(row_of_entry, rows.starts, side="left")
        stops = np.searchsorted(row_of_entry, rows.stops, side="left")
        visible = visible_entries(definition, self._layers)
        runs = value_runs(starts, stops, visible, rep.size)
        if runs.total != values.total:
            raise corrupt(f"{values.total} levels with a value", str(runs.total))
        cut_rep = _cut_levels(rep, starts, stops)
        if (
            cut_rep is None
            or int((cut_rep == num_list_layers(self._layers)).sum()) != rows.num_rows
        ):
            begun = 0 if cut_rep is None else int((cut_rep == num_list_layers(self._layers)).sum())
            raise corrupt(f"{rows.num_rows} rows in these chunks", f"{begun} row starts")
        return DecodedPage(
            self._values.ranges(values, runs.starts, runs.stops),
            cut_rep,
            _cut_levels(definition, starts, stops),
            self._layers,
        )


def _cut_levels(levels: AnyLevels | None, starts: Ints, stops: Ints) -> AnyLevels | None:
    if levels is None:
        return None
    if starts.size == 1:
        return levels[int(starts[0]) : int(stops[0])]
    return levels[expand_ranges(starts, stops)]


@dataclass(frozen=True, slots=True)
class ChunkValues:
    """How the values of a page are decoded; ``items`` are what they number, if they are numbers."""

    encoding: encodings21.CompressiveEncoding
    codecs: Codecs
    items: DataBlock | None
    page_items: PageItems | None = None

    def whole(self, chunks: Chunks) -> DataBlock:
        """Decode all values of the chunks."""
        values = self.codecs.decode_chunks(self.encoding, chunks)
        total = chunks.total
        if values.num_values != total:
            raise corrupt(f"{total} values", str(values.num_values))
        pages = chunks.pages
        return self._looked_up(values, None if pages is None else pages.repeat(chunks.num_values))

    def ranges(self, chunks: Chunks, starts: Ints, stops: Ints) -> DataBlock:
        """Decode the values at these positions of the chunks, counted through all of them.

        Few values are fetched one by one where the encoding allows it; else whole chunks are
        decoded and cut.
        """
        total = chunks.total
        if starts.size == 1:
            num_wanted = int(stops[0]) - int(starts[0])
        else:
            num_wanted = int(np.add.reduce(stops - starts))
        is_sparse = num_wanted * SPARSE_SHARE <= total > _FEW_VALUES
        if is_sparse and self.codecs.can_gather(self.encoding):
            ends = np.cumsum(chunks.num_values)
            positions = expand_ranges(starts, stops)
            owner = np.searchsorted(ends, positions, side="right")
            inside = positions - (ends - chunks.num_values)[owner]
            return self.single(chunks, ValuePlaces(owner, inside))
        return gather_ranges(self.whole(chunks), starts, stops)

    def single(self, chunks: Chunks, request: ValuePlaces) -> DataBlock:
        """Fetch single values without decoding their chunks."""
        pages = None if chunks.pages is None else chunks.pages[request.chunk]
        return self._looked_up(self.codecs.gather(self.encoding, chunks, request), pages)

    def _looked_up(self, values: DataBlock, pages: Ints | None) -> DataBlock:
        if self.items is None:
            return values
        if not isinstance(values, FixedWidth):
            raise corrupt("fixed-width dictionary indices", type(values).__name__)
        if self.page_items is not None and pages is not None:
            values = self.page_items.shifted(values, pages)
        return Dictionary(values.num_values, values, self.items)
