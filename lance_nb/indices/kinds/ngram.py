"""N-gram: for each three letters in a row, the rows whose text has them.

``ngram_postings.lance`` has ``tokens`` (u32) and ``posting_list`` (64-bit sets of rows). Texts are
lower-cased and folded to ASCII, and cut into all pieces of three characters; those with a character
that is no letter or digit are dropped. A token is the number of its characters in base 37: digits
are 1 to 10, letters 11 to 36.

A text that contains a piece contains its three-letter pieces, so what is found may pass and is
computed again. Only pieces of ASCII letters and digits are looked up.

Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from lance_nb.errors import CorruptFileError
from lance_nb.indices.index_file import IndexFile, numbers
from lance_nb.indices.leaf import Contains, Leaf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS, U64s, common, set64_rows

FILES = ("ngram_postings.lance",)
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_BASE = len(_LETTERS) + 1
_TOKENS_MAX = _BASE**3
_LISTS_MAX = 16
"""Lists that are read for a question; more of them hardly leave fewer rows."""


class NGram:
    """One segment of an n-gram index."""

    def __init__(self, file: IndexFile) -> None:
        file.check_rows(_TOKENS_MAX)
        self._file = file
        (tokens,) = file.read_all("tokens")
        found = numbers(tokens.drop_null(), file.path, np.int64)
        if len(found) != file.num_rows:
            raise CorruptFileError(file.path, None, "tokens without nulls", "nulls")
        self._places = {token: place for place, token in enumerate(found.tolist())}

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
        parts: list[U64s] = [set64_rows(one.as_buffer(), self._file.path) for one in lists]
        return Found(reduce(common, parts), is_exact=False)


def _tokens(leaf: Leaf) -> list[int]:
    """Return the different tokens of the pieces that are asked for."""
    asked = leaf.asks(Contains)
    if not isinstance(asked, Contains):
        return []
    found: dict[int, None] = {}
    for piece in asked.pieces:
        text = "".join(one.lower() if one.isascii() else " " for one in piece)
        for at in range(len(text) - 2):
            codes = [_LETTERS.find(letter) + 1 for letter in text[at : at + 3]]
            if all(codes):
                found[(codes[0] * _BASE + codes[1]) * _BASE + codes[2]] = None
    return list(found)
