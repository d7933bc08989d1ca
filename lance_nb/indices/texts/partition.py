"""Open the files of one segment of a text index.

====================  ==========================================================================
``metadata.lance``    settings: the numbers of the partitions, the parameters; one row:
                      fragments whose entries do not count
``part_N_tokens``     one row: the finite-state map from token to number
``part_N_docs``       a row per document: ``_rowid``, ``_num_tokens``
``part_N_invert``     a row per token: ``_length``, ``_posting``, with positions also
                      ``_compressed_position`` and ``_position_block_offset``
====================  ==========================================================================

What is read is kept with the handle of the dataset, as files never change: documents and maps
(``SEGMENT_BYTES`` in all), and posting lists that were decoded (``POSTING_BYTES`` of a segment).

Limits: ``PARTITIONS_MAX`` partitions.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, NotSupportedError, describe_repeated
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.roaring import check_portable
from lance_nb.indices.index_file import IndexFile, open_file
from lance_nb.indices.row_sets import ROWS_MAX, U64s
from lance_nb.indices.texts.fst import Fst
from lance_nb.indices.texts.postings import (
    BLOCK,
    Posting,
    U32s,
    decode_positions,
    decode_posting,
)
from lance_nb.indices.texts.scores import Factors, factors_of
from lance_nb.indices.texts.tokenizer import TokenizerParameters, stored_parameters
from lance_nb.table.file_cache import FileCache
from lance_nb.table.index_search import numbers
from lance_nb.table.snapshot import Snapshot

NEWEST = 2
"""The newest ``index_version`` that is read."""
FORMAT_VERSION = "2"
TAIL_CODEC = "varint_delta_v1"
POSITIONS_CODEC = "packed_delta_v1"
POSITIONS_LAYOUT = "shared_stream_v2"
PARTITIONS_MAX = 4096
SEGMENT_BYTES = 1 << 29
POSTING_BYTES = 1 << 26

Floats = npt.NDArray[np.float32]


class Partition:
    """One partition: its tokens, documents and posting lists."""

    def __init__(self, snapshot: Snapshot, index: IndexMetadata, number: int) -> None:
        """Read tokens and documents. Raises CorruptFileError, NotSupportedError."""
        tokens, documents, self._postings = (
            open_file(snapshot, index, f"part_{number}_{name}.lance")
            for name in ("tokens", "docs", "invert")
        )
        self.path = self._postings.path
        for file in (documents, self._postings):
            file.check_rows(ROWS_MAX)
        if tokens.num_rows != 1:
            raise CorruptFileError(tokens.path, None, "one row", f"{tokens.num_rows}")
        (stored,) = tokens.read_all("_token_fst_bytes")
        if stored.null_count or not _is_binary(stored.type):
            raise CorruptFileError(tokens.path, None, "a finite-state map", str(stored.type))
        self.tokens = Fst(stored[0].as_py(), tokens.path)
        rows, sizes = documents.read_all("_rowid", "_num_tokens")
        self.rows: U64s = numbers(rows, documents.path)
        self.sizes: Floats = numbers(sizes, documents.path, np.float32)
        self.num_documents = self.rows.size
        self.total_tokens = float(self.sizes.sum(dtype=np.float64))
        total = documents.setting("total_tokens")
        if total != str(int(self.total_tokens)):
            raise CorruptFileError(
                documents.path, None, f"{total[:20]} tokens", f"{self.total_tokens:.0f}"
            )
        if not bool((self.rows[1:] > self.rows[:-1]).all()):
            ordered = np.sort(self.rows)
            if bool((ordered[1:] == ordered[:-1]).any()):
                actual = f"row {describe_repeated(self.rows)}"
                raise CorruptFileError(documents.path, None, "different rows", actual)
        (lengths,) = self._postings.read_all("_length")
        self._lengths: U32s = numbers(lengths, self.path, np.uint32)
        if self.tokens.num_keys != self._lengths.size:
            expected = f"{self._lengths.size} tokens"
            raise CorruptFileError(tokens.path, None, expected, str(self.tokens.num_keys))
        if self._postings.setting("posting_tail_codec") != TAIL_CODEC:
            raise NotSupportedError(f"{self.path}: posting lists of an older form")
        self.has_positions = "_compressed_position" in self._postings.names
        self._cached_postings: OrderedDict[int, Posting] = OrderedDict()
        self._factors: dict[int, Factors] = {}
        self._average = 0.0  # tokens of a document, for which the factors hold

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without posting lists."""
        return self.rows.nbytes + self.sizes.nbytes + self._lengths.nbytes

    def number(self, token: str) -> int | None:
        """Return the number of a token. Raises CorruptFileError."""
        return self._checked(self.tokens.get(token.encode()))

    def near(
        self, token: str, distance: int, prefix_length: int, most: int
    ) -> list[tuple[str, int]]:
        """Return the tokens that are spelled like one, with their numbers."""
        candidates = self.tokens.within(token, distance, prefix_length, most)
        for _, number in candidates:
            self._checked(number)
        return candidates

    def _checked(self, number: int | None) -> int | None:
        if number is not None and number >= self._lengths.size:
            raise CorruptFileError(self.path, None, f"{number + 1} tokens", f"{self._lengths.size}")
        return number

    def length(self, number: int) -> int:
        """Return in how many documents a token is."""
        return int(self._lengths[number])

    def posting(self, number: int) -> Posting:
        """Return the documents of a token. Raises CorruptFileError."""
        cached = self._cached_postings.get(number)
        if cached is not None:
            self._cached_postings.move_to_end(number)
            return cached
        (blocks,) = self._postings.read_rows(["_posting"], np.array([number], np.int64))
        if not (pa.types.is_list(blocks.type) and _is_binary(blocks.type.value_type)):
            raise CorruptFileError(self.path, None, "lists of blocks", str(blocks.type))
        if blocks.null_count or blocks.flatten().null_count:
            raise CorruptFileError(self.path, None, "blocks without nulls", "nulls")
        posting = decode_posting(
            blocks.flatten(), self.length(number), self.num_documents, self.path
        )
        is_more = posting.frequencies > self.sizes[posting.documents]
        if bool(is_more.any()):
            document = int(is_more.argmax())
            size = int(self.sizes[posting.documents[document]])
            expected = f"no token more than {size} times, the length of its text"
            times = f"token {number} {int(posting.frequencies[document])} times"
            raise CorruptFileError(self.path, None, expected, times)
        self._cached_postings[number] = posting
        self._shrink(number)
        return posting

    def factors(self, number: int, average: float) -> Factors:
        """Return what BM25 makes of the frequencies of a token. Raises CorruptFileError.

        ``average`` is the number of tokens of a document.
        """
        if self._average != average:
            self._factors.clear()
            self._average = average
        posting = self.posting(number)
        cached = self._factors.get(number)
        if cached is None:
            factors = posting.frequencies.astype(np.float32)
            sizes = self.sizes[posting.documents]
            factors /= factors + (np.float32(0.3) + sizes * np.float32(0.9 / average))
            cached = factors_of(posting.documents, factors)
            self._factors[number] = cached
            self._shrink(number)
        return cached

    def _shrink(self, number: int) -> None:
        """Forget what was asked for longest ago, and not ``number``, until the rest is small."""
        held = self._cached_postings, self._factors
        while len(self._cached_postings) > 1:
            if sum(entry.nbytes for cache in held for entry in cache.values()) <= POSTING_BYTES:
                break
            oldest = next(iter(self._cached_postings))
            if oldest == number:
                self._cached_postings.move_to_end(number)
                continue
            del self._cached_postings[oldest]
            self._factors.pop(oldest, None)

    def positions(self, number: int, posting: Posting, chosen: Ints) -> tuple[Ints, Ints]:
        """Return where a token is in some documents; see ``decode_positions``."""
        names = ["_compressed_position", "_position_block_offset"]
        streams, offsets = self._postings.read_rows(names, np.array([number], np.int64))
        if streams.null_count or not _is_binary(streams.type) or not pa.types.is_list(offsets.type):
            raise CorruptFileError(self.path, None, "positions", str(streams.type))
        stream = np.frombuffer(streams[0].as_buffer(), np.uint8)
        starts = numbers(offsets.flatten(), self.path, np.int64)
        return decode_positions(stream, starts, posting, chosen=chosen, path=self.path)


class TextSegment:
    """The partitions of one segment."""

    def __init__(self, snapshot: Snapshot, index: IndexMetadata) -> None:
        """Read what does not depend on a query. Raises CorruptFileError, NotSupportedError."""
        metadata = open_file(snapshot, index, "metadata.lance")
        self.parameters = _parameters(metadata)
        self.void = _void_fragments(metadata)
        self.partitions = tuple(
            Partition(snapshot, index, number) for number in _partitions(metadata)
        )
        self.nbytes = sum(partition.nbytes for partition in self.partitions)


_opened: WeakKeyDictionary[FileCache, OrderedDict[tuple[str, str], TextSegment]] = (
    WeakKeyDictionary()
)


def open_segment(snapshot: Snapshot, index: IndexMetadata) -> TextSegment:
    """Return the files of a segment, read once per handle.

    Raises NotSupportedError, CorruptFileError, ObjectNotFoundError.
    """
    check_version(index)
    opened = _opened.setdefault(snapshot.files, OrderedDict())
    store, _ = snapshot.locations.locate("", index.base_id)
    key = store.uri, index.uuid
    segment = opened.get(key)
    if segment is None:
        segment = opened[key] = TextSegment(snapshot, index)
        while (
            len(opened) > 1 and sum(segment.nbytes for segment in opened.values()) > SEGMENT_BYTES
        ):
            opened.popitem(last=False)
    else:
        opened.move_to_end(key)
    return segment


def check_version(index: IndexMetadata) -> None:
    """Raise NotSupportedError for a segment that is newer than what is known."""
    if (index.index_version or 0) > NEWEST:
        raise NotSupportedError(
            f"index {index.name!r} is of version {index.index_version}, {NEWEST} is known"
        )


def read_parameters(snapshot: Snapshot, index: IndexMetadata) -> TokenizerParameters:
    """Return how a segment cuts texts. Raises as ``open_segment``."""
    check_version(index)
    return _parameters(open_file(snapshot, index, "metadata.lance"))


def _parameters(metadata: IndexFile) -> TokenizerParameters:
    block = metadata.setting("posting_block_size", str(BLOCK))
    if block != str(BLOCK):
        raise NotSupportedError(f"{metadata.path}: posting lists in blocks of {block[:20]}")
    if metadata.setting("token_set_format") != "fst":
        raise NotSupportedError(f"{metadata.path}: tokens are not in a finite-state map")
    return stored_parameters(metadata.setting("params"), metadata.path)


def _partitions(metadata: IndexFile) -> list[int]:
    text = metadata.setting("partitions")
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    is_list = isinstance(parsed, list) and len(parsed) <= PARTITIONS_MAX
    if not is_list or not all(type(number) is int and 0 <= number < 1 << 63 for number in parsed):
        expected = f"a list of at most {PARTITIONS_MAX} partitions"
        raise CorruptFileError(metadata.path, None, expected, text[:40])
    if len(set(parsed)) != len(parsed):
        raise CorruptFileError(metadata.path, None, "different partitions", text[:40])
    return list(parsed)


def _void_fragments(metadata: IndexFile) -> Ints:
    """Return the fragments whose entries do not count, ascending."""
    if "deleted_fragments" not in metadata.names:
        return np.zeros(0, np.int64)
    metadata.check_rows(1)
    (stored,) = metadata.read_all("deleted_fragments")
    if not len(stored) or not _is_binary(stored.type) or stored.null_count:
        return np.zeros(0, np.int64)
    data = stored[0].as_py()
    check_portable(memoryview(data), metadata.path)
    try:
        fragments = BitMap.deserialize(data)
    except ValueError as error:
        raise CorruptFileError(metadata.path, None, "a Roaring bitmap", str(error)) from error
    if len(fragments) > 1 << 20:
        raise NotSupportedError(f"{metadata.path}: {len(fragments):,} fragments do not count")
    return np.frombuffer(fragments.to_array(), np.uint32).astype(np.int64)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
