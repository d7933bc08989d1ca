"""FSST: byte strings as codes of a table of symbols.

Layout: ``binary`` holds the codes as byte strings (with their nulls), ``symbol_table`` the symbols
in the form that the compressive encoding of the same name has.
Source: message ``Fsst`` of lance.encodings.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_nb._pb import encodings
from lance_nb.encodings.base import AllNull, Rows, VariableWidth, corrupt
from lance_nb.encodings.kernels import fsst
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values


class Fsst:
    """Decode strings with the symbol table of their page.

    ``symbol_table`` parses one; None means that the strings are stored as they are.
    """

    def __init__(self, symbol_table: Callable[[bytes], fsst.Symbols | None]) -> None:
        self._symbol_table = symbol_table

    def decode(
        self, encoding: encodings.Fsst, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the codes, then the strings."""
        symbols = self._symbol_table(encoding.symbol_table)
        codes = yield from codecs.decode(encoding.binary, rows, page)
        block = codes.block
        if symbols is None or isinstance(block, AllNull):
            return codes
        if not isinstance(block, VariableWidth):
            raise corrupt("FSST codes of variable width", type(block).__name__)
        offsets, data = fsst.decode(block.data, block.offsets, symbols)
        return Values(VariableWidth(block.num_values, offsets, data), codes.validity)
