"""Build the files of a text index: cut the texts of a segment and write its partitions.

The words of some documents are sorted by word, which makes the posting lists; all blocks of all
lists are encoded together. Partitions are independent, so memory is bounded by ``PARTITION_TOKENS``
words: then a partition is written and the next one begins.

The bounds of blocks (their best score, and the highest frequency with the shortest document of a
block and of 32 blocks) let readers skip blocks.

Limits: columns of texts, not of lists of texts.
Source: files that pylance 14.0.2 writes; layouts in ``partition`` and ``postings``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.encodings.kernels.ranges import ragged_indices, starts_of
from lance_nb.errors import InvalidInputError
from lance_nb.format.index_metadata import IndexMetadata, inverted_details
from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows
from lance_nb.indices.texts.fst import write_fst
from lance_nb.indices.texts.partition import (
    FORMAT_VERSION,
    NEWEST,
    POSITIONS_CODEC,
    POSITIONS_LAYOUT,
    TAIL_CODEC,
    read_parameters,
)
from lance_nb.indices.texts.postings import BLOCK, GROUP_BYTES, HEAD_BYTES, Bytes, U32s
from lance_nb.indices.texts.tokenizer import (
    Tokenizer,
    TokenizerParameters,
    is_text,
    parameters_of,
)
from lance_nb.table.snapshot import Snapshot

DETAILS_URL = "/lance.table.InvertedIndexDetails"
PARTITION_TOKENS = 1 << 23
_GROUP_BLOCKS = 32  # blocks that have a common bound
_IGNORED = ("memory_limit", "num_workers")  # of pylance's builder


def check(field: pa.Field, parameters: Parameters) -> Parameters:
    """Return all parameters. Raises InvalidInputError, NotSupportedError."""
    if not is_text(field.type):
        raise InvalidInputError(
            f"an INVERTED index holds texts or lists of texts: column {field.name!r} is "
            f"{field.type}"
        )
    checked = parameters_of(
        {key: parameter for key, parameter in parameters.items() if key not in _IGNORED}
    )
    if checked.block_size != BLOCK:
        raise InvalidInputError(f"block_size can only be {BLOCK}, not {checked.block_size}")
    Tokenizer(checked)  # a package that is missing is named before anything is read
    return asdict(checked)


def stored(snapshot: Snapshot, index: IndexMetadata) -> Parameters:
    """Return the parameters that a segment was built with."""
    return asdict(read_parameters(snapshot, index))


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the files of a segment."""
    checked = parameters_of(parameters)
    tokenizer = Tokenizer(checked)
    documents = _Documents()
    count = 0
    for batch in rows.batches():
        documents.add(batch, tokenizer)
        if documents.num_tokens >= PARTITION_TOKENS:
            _write_partition(files, count, documents, tokenizer)
            count += 1
            documents = _Documents()
            tokenizer.forget()
    if documents.num_tokens or not count:
        with rows.progress.stage("write_partition", documents.num_tokens, "tokens") as add:
            _write_partition(files, count, documents, tokenizer)
            add(documents.num_tokens)
        count += 1
    _write_metadata(files, count, checked)
    return SegmentDetails(inverted_details(asdict(checked)), NEWEST)


class _Documents:
    """The words of some rows; a row without a word is no document."""

    def __init__(self) -> None:
        self.num_tokens = 0
        self._num_documents = 0
        self._rows: list[Any] = []
        self._sizes: list[U32s] = []
        self._columns: tuple[list[U32s], list[U32s], list[U32s]] = ([], [], [])

    def add(self, batch: pa.RecordBatch, tokenizer: Tokenizer) -> None:
        """Cut a batch of ``value`` and ``row``."""
        tokens = tokenizer.cut(batch.column(0))
        sizes = np.bincount(tokens.texts, minlength=batch.num_rows)
        filled = np.flatnonzero(sizes)
        numbers = np.cumsum(sizes > 0) - 1 + self._num_documents
        rows = np.asarray(batch.column(1).to_numpy(zero_copy_only=False), np.uint64)
        self._rows.append(rows[filled])
        self._sizes.append(sizes[filled].astype(np.uint32))
        for column, values in zip(
            self._columns, (numbers[tokens.texts], tokens.words, tokens.positions), strict=True
        ):
            column.append(values.astype(np.uint32))
        self._num_documents += filled.size
        self.num_tokens += tokens.words.size

    @property
    def rows(self) -> Any:
        """The row of each document."""
        return np.concatenate([np.zeros(0, np.uint64), *self._rows])

    @property
    def sizes(self) -> U32s:
        """The number of words of each document."""
        return np.concatenate([np.zeros(0, np.uint32), *self._sizes])

    def occurrences(self) -> list[U32s]:
        """Return the document, the word and the position of each word."""
        empty = np.zeros(0, np.uint32)
        return [np.concatenate([empty, *column]) for column in self._columns]


class _Blocks(NamedTuple):
    """The blocks of all lists: their first entry and number of entries; and those of each list."""

    starts: Ints
    sizes: Ints
    firsts: Ints  # of each list the number of its first block, and the total

    @property
    def lists(self) -> Ints:
        """Blocks of each list."""
        return np.diff(self.firsts)


def _write_partition(
    files: SegmentFiles, number: int, documents: _Documents, tokenizer: Tokenizer
) -> None:
    words = sorted((word.encode(), place) for word, place in tokenizer.words.items())
    ranks = np.zeros(len(words), np.int64)
    ranks[[place for _, place in words]] = np.arange(len(words))
    owners, numbers, positions = documents.occurrences()
    order, listed = _by_word(ranks[numbers], len(words))
    owners, positions = owners[order], positions[order]
    sizes = documents.sizes
    changes = (listed[1:] != listed[:-1]) | (owners[1:] != owners[:-1])
    starts = np.flatnonzero(np.concatenate(([True], changes)))[: listed.size]
    frequencies = np.diff(np.append(starts, listed.size))
    entries, token_of = owners[starts].astype(np.int64), listed[starts]
    lengths = np.bincount(token_of, minlength=len(words))
    blocks = _blocks_of(lengths)
    scores = _scores(token_of, entries, frequencies, lengths=lengths, sizes=sizes)
    bounds = np.maximum.reduceat(scores, blocks.starts) if entries.size else scores
    columns: dict[str, Any] = {
        "_posting": _postings(entries, frequencies, blocks, bounds),
        "_max_score": pa.array(
            np.maximum.reduceat(bounds, blocks.firsts[:-1]) if entries.size else bounds
        ),
        "_length": pa.array(lengths.astype(np.uint32)),
        "_impacts": _impacts(entries, frequencies, blocks, sizes),
    }
    if tokenizer.parameters.with_position:
        before = np.concatenate(([0], positions[:-1])).astype(np.int64)[: positions.size]
        before[starts] = 0
        deltas = positions.astype(np.int64) - before
        columns |= _positions(deltas, starts_of(frequencies), blocks)
    settings = _settings(tokenizer.parameters)
    _write_columns(files, f"part_{number}_invert.lance", columns, settings)
    total = {"total_tokens": str(int(sizes.sum(dtype=np.int64)))}
    listed_documents = {"_rowid": pa.array(documents.rows), "_num_tokens": pa.array(sizes)}
    _write_columns(files, f"part_{number}_docs.lance", listed_documents, total)
    keys = [key for key, _ in words]
    tokens = {
        "_token_fst_bytes": pa.array([write_fst(keys)], pa.large_binary()),
        "_token_next_id": pa.array([len(keys)], pa.uint32()),
        "_token_total_length": pa.array([sum(map(len, keys))], pa.uint64()),
    }
    _write_columns(files, f"part_{number}_tokens.lance", tokens, {})


def _by_word(words: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the order of words that keeps the order of documents, and the words in it."""
    # numpy sorts numbers of 16 bits by counting.
    small = words.astype(np.uint16) if count <= 1 << 16 else words
    order = np.argsort(small, kind="stable")
    return order, words[order]


def _blocks_of(lengths: Ints) -> _Blocks:
    counts = -(-lengths // BLOCK)
    firsts = starts_of(counts)
    inside = ragged_indices(np.zeros(counts.size, np.int64), counts) * BLOCK
    lists = np.repeat(np.arange(counts.size), counts)
    starts = starts_of(lengths)[:-1][lists] + inside
    return _Blocks(starts, np.minimum(lengths[lists] - inside, BLOCK), firsts)


def _scores(tokens: Ints, documents: Ints, frequencies: Ints, lengths: Ints, sizes: U32s) -> Any:
    """Return the score of each entry among the documents of the partition."""
    total = max(sizes.size, 1)
    average = float(sizes.sum(dtype=np.int64)) / total
    weights = np.log((total - lengths + 0.5) / (lengths + 0.5) + 1) * 2.2
    norms = 0.3 + sizes[documents] * (0.9 / max(average, 1e-9))
    return (weights[tokens] * frequencies / (frequencies + norms)).astype(np.float32)


def _postings(documents: Ints, frequencies: Ints, blocks: _Blocks, bounds: Any) -> pa.Array:
    deltas = documents.copy()
    deltas[1:] -= documents[:-1]
    is_full = blocks.sizes == BLOCK
    full, tails = np.flatnonzero(is_full), np.flatnonzero(~is_full)
    places = blocks.starts[full][:, None] + np.arange(BLOCK)
    gaps = deltas[places].astype(np.uint32)
    gaps[:, :1] = 0
    counts = frequencies[places].astype(np.uint32)
    gap_widths, count_widths = _widths(gaps), _widths(counts)
    tail_sizes = blocks.sizes[tails]
    deltas[blocks.starts[tails]] = documents[blocks.starts[tails]]
    entries = ragged_indices(blocks.starts[tails], tail_sizes)
    starts = starts_of(2 * tail_sizes)[:-1]
    values = np.empty(2 * int(tail_sizes.sum()), np.int64)
    values[ragged_indices(starts, tail_sizes)] = deltas[entries]
    values[ragged_indices(starts + tail_sizes, tail_sizes)] = frequencies[entries]
    numbers = _Varints(values)
    sizes = np.empty(blocks.sizes.size, np.int64)
    sizes[full] = HEAD_BYTES + 1 + GROUP_BYTES * (gap_widths + count_widths)
    sizes[tails] = 4 + numbers.sizes_of(2 * tail_sizes)
    offsets = starts_of(sizes)
    out = np.zeros(int(offsets[-1]), np.uint8)
    begins = offsets[:-1]
    _put(out, begins, bounds.astype("<f4"))
    _put(out, begins[full] + 4, documents[blocks.starts[full]].astype("<u4"))
    out[begins[full] + 8] = gap_widths
    _put_packed(out, begins[full] + HEAD_BYTES, gaps, gap_widths)
    second = begins[full] + HEAD_BYTES + GROUP_BYTES * gap_widths
    out[second] = count_widths
    _put_packed(out, second + 1, counts, count_widths)
    numbers.put(out, begins[tails] + 4, 2 * tail_sizes)
    return _lists_of_bytes(out, offsets, blocks.firsts)


def _impacts(documents: Ints, frequencies: Ints, blocks: _Blocks, sizes: U32s) -> pa.Array:
    """Return for each block, and behind them for each 32, its last document and its bound."""
    groups = -(-blocks.lists // _GROUP_BLOCKS)
    starts = ragged_indices(np.zeros(groups.size, np.int64), groups) * _GROUP_BLOCKS
    group_starts = np.repeat(blocks.firsts[:-1], groups) + starts
    ends = np.minimum(group_starts + _GROUP_BLOCKS, np.repeat(blocks.firsts[1:], groups))
    last, most, least = (np.zeros(0, np.int64) for _ in range(3))
    if documents.size:
        last = documents[blocks.starts + blocks.sizes - 1]
        most = np.maximum.reduceat(frequencies, blocks.starts)
        least = np.minimum.reduceat(sizes[documents].astype(np.int64), blocks.starts)
        last = np.concatenate([last, last[ends - 1]])
        most = np.concatenate([most, np.maximum.reduceat(most, group_starts)])
        least = np.concatenate([least, np.minimum.reduceat(least, group_starts)])
    # A document of one word needs no length: it is one more than that of the pair before, 0.
    is_long = (least != 1).astype(np.int64)
    counts = 3 + is_long
    values = np.empty(int(counts.sum()), np.int64)
    first_places = starts_of(counts)[:-1]
    values[first_places], values[first_places + 1], values[first_places + 2] = (
        last,
        1,
        (most - 1) << 1 | is_long,
    )
    long = np.flatnonzero(is_long)
    values[first_places[long] + 3] = least[long]
    numbers = _Varints(values)
    entry_sizes = numbers.sizes_of(counts)
    # Blocks of a list first, then its groups.
    order = np.empty(counts.size, np.int64)
    firsts = starts_of(blocks.lists + groups)
    num_blocks = blocks.sizes.size
    order[ragged_indices(firsts[:-1], blocks.lists)] = np.arange(num_blocks)
    order[ragged_indices(firsts[:-1] + blocks.lists, groups)] = num_blocks + np.arange(
        group_starts.size
    )
    offsets = starts_of(entry_sizes[order])
    begins = np.empty(counts.size, np.int64)
    begins[order] = offsets[:-1]
    out = np.zeros(int(offsets[-1]), np.uint8)
    numbers.put(out, begins, counts)
    return _lists_of_bytes(out, offsets, firsts)


def _positions(deltas: Ints, occurrences: Ints, blocks: _Blocks) -> dict[str, pa.Array]:
    """Return the streams of positions; ``occurrences`` says where those of each entry begin."""
    starts = occurrences[blocks.starts]
    counts = occurrences[blocks.starts + blocks.sizes] - starts
    groups, remainders = counts // BLOCK, counts % BLOCK
    owners = np.repeat(np.arange(counts.size), groups)
    inside = ragged_indices(np.zeros(counts.size, np.int64), groups)
    packed = deltas[(starts[owners] + inside * BLOCK)[:, None] + np.arange(BLOCK)]
    values = packed.astype(np.uint32)
    widths = _widths(values)
    numbers = _Varints(deltas[ragged_indices(starts + groups * BLOCK, remainders)])
    group_offsets = starts_of(1 + GROUP_BYTES * widths)
    of_block = starts_of(groups)
    group_bytes = group_offsets[of_block[1:]] - group_offsets[of_block[:-1]]
    offsets = starts_of(group_bytes + numbers.sizes_of(remainders))
    out = np.zeros(int(offsets[-1]), np.uint8)
    begins = offsets[:-1][owners] + group_offsets[:-1] - group_offsets[of_block[:-1]][owners]
    out[begins] = widths
    _put_packed(out, begins + 1, values, widths)
    numbers.put(out, offsets[:-1] + group_bytes, remainders)
    streams = offsets[blocks.firsts]
    relative = offsets[:-1] - np.repeat(streams[:-1], blocks.lists)
    lists = pa.ListArray.from_arrays(
        from_integers(blocks.firsts.astype(np.int32)), pa.array(relative.astype(np.uint32))
    )
    return {"_compressed_position": _binary(out, streams), "_position_block_offset": lists}


class _Varints:
    """Numbers encoded with 7 bits per byte, low ones first."""

    def __init__(self, values: Ints) -> None:
        self._values = values
        self._sizes = np.ones(values.size, np.int64)
        for bits in (7, 14, 21, 28):
            self._sizes += values >= 1 << bits
        self._starts = starts_of(self._sizes)

    def sizes_of(self, counts: Ints) -> Ints:
        """Return the bytes of runs of so many numbers."""
        ends = starts_of(counts)
        return self._starts[ends[1:]] - self._starts[ends[:-1]]

    def put(self, out: Bytes, places: Ints, counts: Ints) -> None:
        """Write runs of numbers, each to a place."""
        first = self._starts[starts_of(counts)[:-1]]
        slots = self._starts[:-1] + np.repeat(places - first, counts)
        for number in range(int(self._sizes.max(initial=0))):
            chosen = np.flatnonzero(self._sizes > number)
            more = (self._sizes[chosen] > number + 1).astype(np.int64) << 7
            out[slots[chosen] + number] = (self._values[chosen] >> (7 * number) & 0x7F) | more


def _widths(groups: U32s) -> Ints:
    """Return how many bits the largest number of each row needs."""
    largest = groups.max(axis=1, initial=0).astype(np.float64)
    _, widths = np.frexp(largest)  # exact below 2**53
    return np.asarray(widths, np.int64)


def _put(out: Bytes, places: Ints, values: Any) -> None:
    """Write numbers of four bytes."""
    out[places[:, None] + np.arange(4)] = values.view(np.uint8).reshape(-1, 4)


def _put_packed(out: Bytes, places: Ints, groups: U32s, widths: Ints) -> None:
    """Pack rows of 128 numbers, and write each to its place; see ``postings``."""
    for width in np.flatnonzero(np.bincount(widths, minlength=1)).tolist():
        chosen = np.flatnonzero(widths == width)
        if not width:
            continue
        values = groups[chosen].reshape(chosen.size, BLOCK // 4, 4)
        words = np.zeros((chosen.size, width, 4), np.uint32)
        for place in range(BLOCK // 4):
            word, shift = divmod(place * width, 32)
            words[:, word] |= values[:, place] << np.uint32(shift)
            if shift + width > 32:
                words[:, word + 1] |= values[:, place] >> np.uint32(32 - shift)
        data = words.reshape(chosen.size, -1).view(np.uint8)
        out[places[chosen][:, None] + np.arange(GROUP_BYTES * width)] = data


def _binary(data: Bytes, offsets: Ints) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, buffers)


def _lists_of_bytes(data: Bytes, offsets: Ints, firsts: Ints) -> pa.Array:
    lists = from_integers(firsts.astype(np.int32))
    return pa.ListArray.from_arrays(lists, _binary(data, offsets))


# --- files ----------------------------------------------------------------------------------------


def _write_columns(
    files: SegmentFiles, name: str, columns: Mapping[str, pa.Array], settings: Mapping[str, str]
) -> None:
    fields = [pa.field(key, column.type, nullable=False) for key, column in columns.items()]
    schema = pa.schema(fields, metadata=dict(settings))
    files.write(name, pa.table(list(columns.values()), schema=schema), schema)


def _settings(parameters: TokenizerParameters) -> dict[str, str]:
    settings = {
        "posting_tail_codec": TAIL_CODEC,
        "posting_block_size": str(BLOCK),
        "format_version": FORMAT_VERSION,
    }
    if parameters.with_position:
        settings |= {"positions_codec": POSITIONS_CODEC, "positions_layout": POSITIONS_LAYOUT}
    return settings


def _write_metadata(files: SegmentFiles, count: int, parameters: TokenizerParameters) -> None:
    settings = _settings(parameters) | {
        "partitions": json.dumps(list(range(count)), separators=(",", ":")),
        "params": parameters.to_json(),
        "token_set_format": "fst",
    }
    void = {"deleted_fragments": pa.array([BitMap().serialize()], pa.binary())}
    _write_columns(files, "metadata.lance", void, settings)
