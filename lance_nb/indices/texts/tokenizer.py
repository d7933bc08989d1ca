"""Cut texts into tokens, as the parameters of a text index say.

Order of work: the base tokenizer cuts; tokens of ``max_token_length`` bytes or more are dropped;
lower case; stems (Snowball, by ``language``); stop words of the language are dropped; letters are
folded to ASCII. The position of a token counts the dropped ones before it; pieces of characters
(``ngram``) are all at position 0, where each counts once in a query.

==============  ===================================================================================
base            tokens
==============  ===================================================================================
``simple``      runs of letters, digits and the marks that belong to letters
``whitespace``  what is between blanks, tabs and line ends
``raw``         the whole text
``ngram``       all pieces of ``min_ngram_length`` to ``max_ngram_length`` characters, or with
                ``prefix_only`` those at the beginning; without stems and stop words
==============  ===================================================================================

Arrow cuts whole columns; the other steps are done once for each different token.

Not supported: ``icu``, ``code``, ``jieba`` and ``lindera``.
Source: behaviour of pylance 14.0.2; ``snowballstemmer`` 3.1 has the same stems.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers, to_integers
from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
)
from lance_nb.format.alphanumeric import ALPHANUMERIC_CLASS
from lance_nb.indices.texts.stop_words import LANGUAGES, stop_words
from lance_nb.table.predicate.comparison import as_mask
from lance_nb.table.predicate.lists import opened
from lance_nb.value_classes import dataclass

BASES = ("simple", "whitespace", "raw", "ngram")
_KNOWN_BASES = ("icu", "code", "jieba", "lindera")
_CODE_FLAGS = ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators")
_NGRAM_MAX = 64
_WORD_BLANKS = "[\t\n\x0c\r ]+"
# Letters that do not decompose into ASCII, each followed by what it is folded to.
_FOLDED = "ÆAE ÐD ØO ÞTH ßss æae ðd øo þth ĐD đd ĦH ħh ıi ĸk ŁL łl ŊN ŋn ŒOE œoe ŦT ŧt ẞSS"


FOLDED: dict[str, str] = {word[0]: word[1:] for word in _FOLDED.split()}
"""Letters, and what ASCII folding makes of them."""


@dataclass(frozen=True, slots=True)
class TokenizerParameters:
    """The parameters of a text index, in the order and with the defaults of pylance."""

    lance_tokenizer: str | None = "text"
    base_tokenizer: str = "simple"
    language: str = "English"
    with_position: bool = False
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: list[str] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    block_size: int = 128
    split_identifiers: bool = False
    split_on_numerics: bool = False
    preserve_original: bool = False
    index_operators: bool = False

    def to_json(self) -> str:
        """Return the parameters as an index file holds them."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def check(self) -> None:
        """Raise InvalidInputError for values that make no sense, NotSupportedError for others."""
        if self.base_tokenizer not in BASES:
            is_known = self.base_tokenizer.partition("/")[0] in _KNOWN_BASES
            problem = "is not supported" if is_known else "is not known"
            raise (NotSupportedError if is_known else InvalidInputError)(
                f"base_tokenizer {self.base_tokenizer!r} {problem}: use {', '.join(BASES)}"
            )
        if self.language not in LANGUAGES:
            raise InvalidInputError(
                f"language {self.language!r} is not known: use {', '.join(LANGUAGES)}"
            )
        if (self.lance_tokenizer or "text") != "text":
            raise NotSupportedError(f"documents of kind {self.lance_tokenizer!r} are not supported")
        if any(getattr(self, name) for name in _CODE_FLAGS):
            raise NotSupportedError(f"{', '.join(_CODE_FLAGS)} need base_tokenizer 'code'")
        if not 1 <= self.min_ngram_length <= self.max_ngram_length <= _NGRAM_MAX:
            raise InvalidInputError(
                f"n-grams have from 1 to {_NGRAM_MAX} characters, min_ngram_length at most "
                f"max_ngram_length: got {self.min_ngram_length} and {self.max_ngram_length}"
            )
        if self.max_token_length is not None and self.max_token_length < 1:
            raise InvalidInputError(f"max_token_length must be positive: {self.max_token_length}")


_TYPES: dict[str, type | tuple[type, ...]] = {
    "lance_tokenizer": (str, type(None)), "base_tokenizer": str, "language": str,
    "max_token_length": (int, type(None)), "custom_stop_words": (list, type(None)),
    "min_ngram_length": int, "max_ngram_length": int, "block_size": int,
}  # fmt: skip
_NAMES = tuple(field.name for field in fields(TokenizerParameters))
BUILD_PARAMETERS = tuple(name for name in _NAMES if name != "lance_tokenizer")
"""What ``create_scalar_index`` takes for INVERTED."""


def parameters_of(values: Mapping[str, Any]) -> TokenizerParameters:
    """Return checked parameters; those that are left out have their default.

    Raises InvalidInputError, NotSupportedError.
    """
    for name, value in values.items():
        if name not in _NAMES:
            raise InvalidInputError(
                f"a text index has no parameter {name!r}; it takes {', '.join(BUILD_PARAMETERS)}"
            )
        expected_type = _TYPES.get(name, bool)
        if not isinstance(value, expected_type) or (
            isinstance(value, bool) and expected_type is not bool
        ):
            raise InvalidInputError(f"{name} cannot be {value!r}")
    parsed = TokenizerParameters(**values)
    words = parsed.custom_stop_words
    if words is not None and not all(isinstance(word, str) for word in words):
        raise InvalidInputError("custom_stop_words is a list of texts")
    parsed.check()
    return parsed


def stored_parameters(text: str, path: str) -> TokenizerParameters:
    """Read the parameters in a file. Raises CorruptFileError, NotSupportedError."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise CorruptFileError(path, None, "parameters in JSON", str(error)) from error
    if not isinstance(values, dict):
        raise CorruptFileError(path, None, "parameters in JSON", text[:40])
    unknown = [name for name in values if name not in _NAMES]
    if any(values[name] for name in unknown):
        raise NotSupportedError(f"{path}: parameter {unknown[0]!r} of a text index is not known")
    try:
        return parameters_of({name: value for name, value in values.items() if name in _NAMES})
    except InvalidInputError as error:
        raise NotSupportedError(f"{path}: {error}") from error


class Tokens(NamedTuple):
    """The tokens of some texts: of each the number of its text, of its word, and its position."""

    texts: Ints
    words: Ints
    positions: Ints


class Tokenizer:
    """Cuts texts; ``words`` has every different token so far, a token's number is its place."""

    def __init__(self, parameters: TokenizerParameters) -> None:
        """Prepare. Raises MissingPackageError where stems need the package."""
        self.parameters = parameters
        self.words: dict[str, int] = {}
        self._numbers: dict[str, int] = {}  # of tokens as they were cut; -1: dropped
        has_words = parameters.base_tokenizer != "ngram"
        stems = parameters.stem and has_words
        self._stem = _stemmer(parameters.language) if stems else None
        self._stopped: frozenset[str] = frozenset()
        if parameters.remove_stop_words and has_words:
            custom = parameters.custom_stop_words
            self._stopped = stop_words(parameters.language) if custom is None else frozenset(custom)

    def query(self, text: str) -> list[tuple[str, int]]:
        """Return the tokens of a query with their positions."""
        tokens = self.cut(pa.repeat(scalar_of(text, pa.string()), 1))
        names = list(self.words)
        places = zip(tokens.words.tolist(), tokens.positions.tolist(), strict=True)
        return [(names[word], position) for word, position in places]

    def cut(self, texts: pa.Array) -> Tokens:
        """Cut a column of texts, or of lists of them; a null has no tokens."""
        owners, values = _texts_of(texts)
        if values.null_count:
            rows = np.flatnonzero(as_mask(pc.is_valid(values), len(values))).astype(np.int64)
            owners = rows if owners is None else owners[rows]
            values = pc.drop_null(values)
        pieces = self._pieces(values)
        offsets = to_integers(pieces.offsets)
        flat = pieces.values[int(offsets[0]) : int(offsets[-1])]
        sizes = np.diff(offsets)
        text_numbers = np.repeat(np.arange(sizes.size, dtype=np.int64), sizes)
        if self.parameters.base_tokenizer in ("simple", "whitespace"):
            # Cutting leaves empty pieces at both ends.
            is_filled = pc.greater(pc.binary_length(flat), scalar_of(0))
            flat, text_numbers = (
                pc.filter(flat, is_filled),
                text_numbers[as_mask(is_filled, len(flat))],
            )
        if owners is not None:
            text_numbers = owners[text_numbers]
        is_ngram = self.parameters.base_tokenizer == "ngram"
        positions = np.zeros(text_numbers.size, np.int64) if is_ngram else _positions(text_numbers)
        words = self._numbered(flat)
        is_kept = words >= 0
        return Tokens(text_numbers[is_kept], words[is_kept], positions[is_kept])

    def _pieces(self, texts: pa.LargeStringArray) -> pa.LargeListArray:
        base = self.parameters.base_tokenizer
        if base == "simple":
            if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
                return pc.split_pattern(_blanked(texts), pattern=" ")
            return pc.split_pattern_regex(texts, pattern=_not_words())
        if base == "whitespace":
            return pc.split_pattern_regex(texts, pattern=_WORD_BLANKS)
        if base == "raw":
            whole = np.arange(len(texts) + 1, dtype=np.int64)
            return pa.LargeListArray.from_arrays(from_integers(whole), texts)
        grams = [self._grams(text) for text in texts.to_pylist()]
        return pa.array(grams, pa.large_list(pa.large_string()))

    def _grams(self, text: str) -> list[str]:
        low, high = self.parameters.min_ngram_length, self.parameters.max_ngram_length
        starts = range(1 if self.parameters.prefix_only else max(len(text) - low + 1, 0))
        return [
            text[start : start + size]
            for start in starts
            for size in range(low, high + 1)
            if start + size <= len(text)
        ]

    def _numbered(self, pieces: pa.Array) -> Ints:
        """Return the number of the token that each piece becomes, -1 for those that are dropped."""
        encoded = pc.dictionary_encode(pieces)
        numbers = self._numbers
        word_numbers = []
        for piece in encoded.dictionary.to_pylist():
            number = numbers.get(piece)
            if number is None:
                word = self.token_of(piece)
                number = -1 if word is None else self.words.setdefault(word, len(self.words))
                numbers[piece] = number
            word_numbers.append(number)
        if not word_numbers:
            return np.zeros(0, np.int64)
        chosen: Ints = np.array(word_numbers, np.int64)[to_integers(encoded.indices)]
        return chosen

    def token_of(self, piece: str) -> str | None:
        """Return the token that a piece of a text becomes, None if it is dropped."""
        parameters = self.parameters
        longest = parameters.max_token_length
        if longest is not None and len(piece.encode()) >= longest:
            return None
        if parameters.lower_case:
            piece = piece.lower() if piece.isascii() else "".join(map(str.lower, piece))
        if self._stem is not None:
            piece = self._stem.stemWord(piece)
        if piece in self._stopped:
            return None
        if parameters.ascii_folding and not piece.isascii():
            piece = "".join(map(folded, piece))
        return piece

    def forget(self) -> None:
        """Forget the tokens so far; numbers begin anew."""
        self.words, self._numbers = {}, {}


@cache
def folded(character: str) -> str:
    """Return ASCII for a letter, or the character itself where there is none."""
    parts = unicodedata.normalize("NFKD", character)
    letters = "".join(part if part.isascii() else FOLDED.get(part, "") for part in parts)
    return letters or character


@cache
def _not_words() -> str:
    r"""Return a pattern of what separates words.

    ``str.isalnum`` is ``\p{L}`` and ``\p{N}``.
    """
    return rf"[^\p{{L}}\p{{N}}{ALPHANUMERIC_CLASS}]+"


_BLANKED = np.array(
    [code if chr(code).isalnum() and code < 0x80 else 0x20 for code in range(256)], np.uint8
)


def _blanked(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put a blank for each ASCII character that belongs to no word: faster than a pattern."""
    _, offsets, data = texts.buffers()
    if data is None:
        return texts
    blanked = _BLANKED[np.frombuffer(data, np.uint8)]
    buffers = [None, offsets, pa.py_buffer(blanked)]
    return pa.Array.from_buffers(texts.type, len(texts), buffers, offset=texts.offset)


def _stemmer(language: str) -> Any:
    try:
        import snowballstemmer
    except ImportError as error:
        raise MissingPackageError(
            f"a text index with stems of {language} words", "snowballstemmer", "lance-nb[text]"
        ) from error
    return snowballstemmer.stemmer(language.lower())


def _texts_of(column: pa.Array) -> tuple[Ints | None, pa.LargeStringArray]:
    """Return the texts of a column, and for lists of texts the row of each."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not (pt.is_list(column.type) or pt.is_large_list(column.type)):
        return None, pc.cast(column, pa.large_string())
    lists = opened(column)  # nothing of what lies under null lists
    return lists.rows, pc.cast(lists.values, pa.large_string())


def _positions(texts: Ints) -> Ints:
    """Return the place of each piece in its text; ``texts`` ascend."""
    places = np.arange(texts.size, dtype=np.int64)
    if not texts.size:
        return places
    starts = np.flatnonzero(np.concatenate(([True], texts[1:] != texts[:-1])))
    counts = np.diff(np.append(starts, texts.size))
    return places - np.repeat(starts, counts)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column of a type has texts to search: texts, or lists of them."""
    if pt.is_list(kind) or pt.is_large_list(kind):
        kind = kind.value_type
    return bool(pt.is_string(kind) or pt.is_large_string(kind))
