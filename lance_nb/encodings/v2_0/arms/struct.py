"""Struct: nothing but a number of rows; the fields are columns of their own.

Layout: no buffers. Null structs cannot be stored in file version 2.0.
Source: message ``SimpleStruct`` of lance.encodings.
"""

from __future__ import annotations

from lance_nb._pb import encodings
from lance_nb.encodings.base import PackedStruct, Rows
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values, check_free


class Struct:
    """Stand for rows of structs."""

    def decode(
        self, encoding: encodings.SimpleStruct, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Return structs without fields."""
        check_free(rows.num_rows)
        yield from ()
        return Values(PackedStruct(rows.num_rows, ()))
