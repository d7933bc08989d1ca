"""Nullable: values and, if some are null, a bitmap of the valid ones.

Layout: ``no_nulls``: the values. ``some_nulls``: ``validity`` (flat, one bit per value) and the
values, null slots included. ``all_nulls``: nothing at all.
Limits: nulls of the values themselves (binary) and of the bitmap add up.
Source: message ``Nullable`` of lance.encodings.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import AllNull, Rows
from lance_nb.encodings.steps import Steps, together
from lance_nb.encodings.v2_0.base import ArrayCodecs, Mask, Page, Values, check_free, fixed_width
from lance_nb.errors import NotSupportedError


class Nullable:
    """Add validity to values."""

    def decode(
        self, encoding: encodings.Nullable, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode bitmap and values side by side."""
        match encoding.WhichOneof("nullability"):
            case "no_nulls":
                values = yield from codecs.decode(encoding.no_nulls.values, rows, page)
                return values
            case "some_nulls":
                some = encoding.some_nulls
                bitmap, values = yield from together(
                    [
                        codecs.decode(some.validity, rows, page),
                        codecs.decode(some.values, rows, page),
                    ]
                )
                return Values(values.block, _both(_mask(bitmap, rows), values.validity))
            case "all_nulls":
                check_free(rows.num_rows)
                return Values(AllNull(rows.num_rows))
        raise NotSupportedError("a page uses a kind of nullability that is not known")


def _mask(bitmap: Values, rows: Rows) -> Mask | None:
    bits = fixed_width(bitmap, 1, "a validity bitmap")
    mask = np.unpackbits(bits, count=rows.num_rows, bitorder="little").view(bool)
    return None if bool(mask.all()) else mask


def _both(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right
