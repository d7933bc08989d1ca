"""List: where the items of each list end; the items themselves are the next column.

Layout: ``offsets`` are ends in the page's ``num_items`` items (see ``v2_0.ends``), null lists have
``null_offset_adjustment`` added. Item positions restart at 0 with every page.
Limits: an end is at most ``num_items``.
Source: message ``List`` of lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

from lance_nb._pb import encodings
from lance_nb.encodings.base import Rows, corrupt
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values
from lance_nb.encodings.v2_0.ends import decode_ends


class List:
    """Decode list rows to ranges of items."""

    def decode(
        self, encoding: encodings.List, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the ends of the rows (and of the one before)."""
        items, validity = yield from decode_ends(
            encoding.offsets, encoding.null_offset_adjustment, rows, page, codecs
        )
        if items.stops.size and int(items.stops[-1]) > encoding.num_items:
            raise corrupt(f"ends up to {encoding.num_items} items", str(int(items.stops[-1])))
        return Values(items, validity)
