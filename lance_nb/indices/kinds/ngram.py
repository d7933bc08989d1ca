"""N-gram: for each three letters in a row, the rows whose text has them.

``ngram_postings.lance`` has ``tokens`` (u32) and ``posting_list`` (64-bit sets of rows). Texts are
lower-cased and folded to ASCII, and cut into all pieces of three characters; those with a character
that is no letter or digit are dropped. A token is the number of its characters in base 37: digits
are 1 to 10, letters 11 to 36.

Folding replaces a character by the ASCII characters of its compatibility decomposition, and some
letters that have none by their usual spelling; capitals that come of folding stay capitals, and
their numbers are those of letters minus 32, modulo 256. Token 0 has the rows without a text.

A text that contains a piece contains its three-letter pieces, so what is found may pass and is
computed again. Only pieces of ASCII letters and digits are looked up.

Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import IndexFile
from lance_nb.indices.leaf import Contains, Leaf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS, U64s, common, set64_rows
from lance_nb.table.index_search import numbers

if TYPE_CHECKING:
    from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows

FILES = ("ngram_postings.lance",)
DETAILS_URL = "/lance.table.NGramIndexDetails"
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_BASE = len(_LETTERS) + 1
_TOKENS_MAX = _BASE**3
_LISTS_MAX = 16
"""Lists that are read for a question; more of them hardly leave fewer rows."""


def statistics(file: IndexFile) -> dict[str, Any]:
    """Return pylance's statistics of a segment."""
    return {"num_ngrams": file.num_rows}


class NGram:
    """One segment of an n-gram index."""

    def __init__(self, file: IndexFile) -> None:
        file.check_rows(_TOKENS_MAX)
        self._file = file
        (tokens,) = file.read_all("tokens")
        token_values = numbers(pc.drop_null(tokens), file.path, np.int64)
        if len(token_values) != file.num_rows:
            raise CorruptFileError(file.path, None, "tokens without nulls", "nulls")
        self._places = {token: place for place, token in enumerate(token_values.tolist())}

    def understands(self, leaf: Leaf) -> bool:
        """Texts that contain three letters or digits in a row."""
        return bool(_tokens(leaf))

    def estimate(self, leaf: Leaf) -> int:
        """Estimate by the share of the lists that are read."""
        share = min(len(_tokens(leaf)), _LISTS_MAX) / max(len(self._places), 1)
        return int(min(share, 1) * self._file.reader.size_bytes) // 8

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Take what the lists of all pieces have in common."""
        tokens = _tokens(leaf)
        if any(token not in self._places for token in tokens):
            return Found(NO_ROWS, is_exact=False)
        chosen = sorted(self._places[token] for token in tokens[:_LISTS_MAX])
        (lists,) = self._file.read_rows(["posting_list"], np.array(chosen, np.int64))
        if lists.null_count:
            raise CorruptFileError(self._file.path, None, "a list for each token", "null")
        parts: list[U64s] = [
            set64_rows(set_data.as_buffer(), self._file.path) for set_data in lists
        ]
        return Found(reduce(common, parts), is_exact=False)


def _tokens(leaf: Leaf) -> list[int]:
    """Return the different tokens of the pieces that are asked for."""
    question = leaf.asks(Contains)
    if not isinstance(question, Contains):
        return []
    tokens: dict[int, None] = {}
    for piece in question.pieces:
        text = "".join(character.lower() if character.isascii() else " " for character in piece)
        for position in range(len(text) - 2):
            codes = [_LETTERS.find(letter) + 1 for letter in text[position : position + 3]]
            if all(codes):
                tokens[(codes[0] * _BASE + codes[1]) * _BASE + codes[2]] = None
    return list(tokens)


# --- building -------------------------------------------------------------------------------------

_SPELLINGS = {
    "\u00e6": "ae", "\u00f0": "d", "\u00f8": "o", "\u00fe": "th", "\u00df": "ss", "\u0111": "d",
    "\u0127": "h", "\u0131": "i", "\u0138": "k", "\u0142": "l", "\u014b": "n", "\u0153": "oe",
    "\u0167": "t", "\u00c6": "AE", "\u0126": "H",
}  # fmt: skip
Tokens = npt.NDArray[np.uint32]


def check(field: pa.Field, parameters: Parameters) -> Parameters:
    """Refuse a column without texts, and parameters. Raises InvalidInputError."""
    if not pt.is_string(field.type) and not pt.is_large_string(field.type):
        raise InvalidInputError(
            f"an NGRAM index holds texts: column {field.name!r} is {field.type}"
        )
    if parameters:
        raise InvalidInputError(f"an NGRAM index has no parameter {min(parameters)!r}")
    return {}


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    _parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the rows of each three-letter piece."""
    from lance_nb.indices.building import SegmentDetails
    from lance_nb.indices.sorted_rows import grouped_rows, sorted_rows

    pairs = pa.schema(
        [pa.field("token", pa.uint32()), pa.field("row", pa.uint64(), nullable=False)]
    )
    lists = pa.field(
        "posting_list", pa.binary(), nullable=False, metadata={"lance-encoding:compression": "none"}
    )
    schema = pa.schema([pa.field("tokens", pa.uint32()), lists])
    with files.create(FILES[0], schema) as file:
        ordered = sorted_rows(_pairs(rows.batches(), pairs), pairs)
        for tokens, sets in grouped_rows(ordered, is_wide=True):
            file.write(pa.RecordBatch.from_arrays([tokens, sets], schema=schema))
    return SegmentDetails()


def _pairs(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield each token of each text with the row of the text; 0 for no text."""
    for batch in batches:
        texts, rows = batch.columns
        if texts.null_count:
            null_rows = pc.filter(rows, pc.is_null(texts))
            zeros = from_integers(np.zeros(len(null_rows), np.uint32))
            yield pa.RecordBatch.from_arrays([zeros, null_rows], schema=schema)
            texts, rows = pc.drop_null(texts), pc.filter(rows, pc.is_valid(texts))
        tokens, owners = _tokens_of(texts)
        columns = [from_integers(tokens), pc.take(rows, from_integers(owners))]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _tokens_of(texts: pa.Array) -> tuple[Tokens, npt.NDArray[np.int64]]:
    """Return the tokens of texts without nulls, and the position of the text of each."""
    texts = pc.ascii_lower(texts)
    is_other = pc.invert(pc.string_is_ascii(texts))
    if pc.any(is_other).as_py():
        texts = pc.replace_with_mask(texts, is_other, _folded(pc.filter(texts, is_other)))
    count = len(texts)
    width = 8 if pt.is_large_string(texts.type) else 4
    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], f"<i{width}", count + 1, texts.offset * width)
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first < 3:
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    codes = _CODES[np.frombuffer(buffers[2], np.uint8)[first:last]]
    starts = offsets.astype(np.int64) - first
    is_whole = (codes[:-2] >= 0) & (codes[1:-1] >= 0) & (codes[2:] >= 0)
    # A piece does not go on into the next text.
    inner = starts[1:-1]
    for back in (1, 2):
        ends = inner - back
        is_whole[ends[(ends >= 0) & (ends < is_whole.size)]] = False
    places = np.flatnonzero(is_whole)
    tokens = (codes[places] * _BASE + codes[places + 1]) * _BASE + codes[places + 2]
    owners = np.searchsorted(starts, places, "right") - 1
    return tokens.astype(np.uint32), owners


def _folded(texts: pa.Array) -> pa.Array:
    """Return the texts in lower case and folded to ASCII; what has no ASCII form is a blank."""
    listed = [text.lower().translate(_FOLDING) for text in texts.to_pylist()]
    return pa.array(listed, texts.type)


class _Folding(dict[int, str]):
    """The ASCII form of each character, computed when it is first met."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        form = letter
        if code > 127:
            parts = unicodedata.normalize("NFKD", letter)
            form = "".join(part if part.isascii() else _SPELLINGS.get(part, "") for part in parts)
        self[code] = form = form or " "
        return form


_FOLDING = _Folding()


def _codes() -> npt.NDArray[np.int64]:
    codes = np.full(256, -1, np.int64)
    for place, letter in enumerate(_LETTERS):
        codes[ord(letter)] = place + 1
    for letter in _LETTERS[10:]:
        codes[ord(letter.upper())] = (codes[ord(letter)] - 32) % 256
    return codes


_CODES = _codes()
