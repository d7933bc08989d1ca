"""Which module decodes which array encoding of file version 2.0: one line per arm.

The set of arms is closed: an unknown one is refused.

Limits: encodings nest at most ``MAX_DEPTH`` deep.
Source: the ``oneof`` of ``ArrayEncoding`` in lance.encodings.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb._pb import encodings
from lance_nb.encodings.base import Rows
from lance_nb.encodings.compression.fsst import symbol_table
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.arms.binary import Binary
from lance_nb.encodings.v2_0.arms.bitpacked import Bitpacked
from lance_nb.encodings.v2_0.arms.bitpacked_for_non_neg import BitpackedForNonNeg
from lance_nb.encodings.v2_0.arms.constant import Constant
from lance_nb.encodings.v2_0.arms.dictionary import Dictionary
from lance_nb.encodings.v2_0.arms.fixed_size_binary import FixedSizeBinary
from lance_nb.encodings.v2_0.arms.fixed_size_list import FixedSizeList
from lance_nb.encodings.v2_0.arms.flat import Flat
from lance_nb.encodings.v2_0.arms.fsst import Fsst
from lance_nb.encodings.v2_0.arms.list import List
from lance_nb.encodings.v2_0.arms.nullable import Nullable
from lance_nb.encodings.v2_0.arms.packed_struct import PackedStruct
from lance_nb.encodings.v2_0.arms.struct import Struct
from lance_nb.encodings.v2_0.base import ArrayCodec, ArrayCodecs, Page, Values
from lance_nb.errors import NotSupportedError

MAX_DEPTH = 20

ARMS: dict[str, ArrayCodec] = {
    "flat": Flat(),
    "nullable": Nullable(),
    "fixed_size_list": FixedSizeList(),
    "list": List(),
    "struct": Struct(),
    "binary": Binary(),
    "dictionary": Dictionary(),
    "fsst": Fsst(symbol_table),
    "packed_struct": PackedStruct(),
    "bitpacked": Bitpacked(),
    "fixed_size_binary": FixedSizeBinary(),
    "bitpacked_for_non_neg": BitpackedForNonNeg(),
    "constant": Constant(),
}


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The ``ArrayCodecs`` handed to an arm; each level of nesting sees one with less depth left."""

    depth_left: int

    def decode(self, encoding: encodings.ArrayEncoding, rows: Rows, page: Page) -> Steps[Values]:
        """Decode rows of any array encoding."""
        if self.depth_left == 0:
            raise NotSupportedError(
                f"array encodings nested over {MAX_DEPTH} deep are not supported"
            )
        arm = encoding.WhichOneof("array_encoding")
        if arm is None:
            raise NotSupportedError(
                "a page uses an array encoding that this release of lance_nb does not know"
            )
        return ARMS[arm].decode(getattr(encoding, arm), rows, page, _LOOKUPS[self.depth_left - 1])


_LOOKUPS = tuple(_Lookup(depth) for depth in range(MAX_DEPTH + 1))

array_codecs: ArrayCodecs = _LOOKUPS[MAX_DEPTH]
