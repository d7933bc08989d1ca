"""Lists of a 2.0 data file, opened: their levels, the items they have, the leaves below them.

Not supported: maps, which 2.0 files cannot hold.
Source: message ArrayEncoding of lance.encodings; checked with pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import concatenated
from lance_nb.encodings.base import Ints, Rows
from lance_nb.encodings.repdef import Level
from lance_nb.encodings.slicing import merged
from lance_nb.encodings.v2_0.base import ItemRanges, Values
from lance_nb.errors import NotSupportedError
from lance_nb.file.columns import Leaf, LeafPart


@dataclass(frozen=True, slots=True)
class ListLevel:
    """Rows of one list field: their level, and the items they have in the child columns."""

    level: Level
    items: Rows


def is_list(type_: pa.DataType, name: str) -> bool:
    """Tell a list from a struct. Raises NotSupportedError for any other nesting."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return True
    if pa.types.is_struct(type_):
        return False
    raise NotSupportedError(f"column {name!r}: file version 2.0 cannot hold {type_} fields")


def rows_below(
    leaf: Leaf, lists: Mapping[int, ListLevel], rows: Rows, depth: int | None = None
) -> Rows:
    """Return the rows wanted of a field below ``ancestors[:depth]`` (all of them for None)."""
    for field_id, _ in reversed(leaf.ancestors[:depth]):
        if field_id in lists:
            return lists[field_id].items
    return rows


def joined_pages(pages: Sequence[Values]) -> ListLevel:
    """Join the pages of one list field."""
    none = np.zeros(0, np.int64)
    blocks = [page.block for page in pages if isinstance(page.block, ItemRanges)]
    starts = np.concatenate([none, *(block.starts for block in blocks)])
    stops = np.concatenate([none, *(block.stops for block in blocks)])
    offsets: Ints = np.zeros(starts.size + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    validity = None
    if any(page.validity is not None for page in pages):
        validity = np.concatenate(
            [
                np.ones(block.starts.size, bool) if page.validity is None else page.validity
                for page, block in zip(pages, blocks, strict=True)
            ]
        )
    return ListLevel(Level(int(starts.size), validity, offsets), merged(starts, stops))


def leaf_parts(
    leaf: Leaf, arrays: Sequence[pa.Array], lists: Mapping[int, ListLevel], rows: Rows
) -> list[LeafPart]:
    """Put levels over the arrays: one part per page, or one for all below a list."""
    if not any(field_id in lists for field_id, _ in leaf.ancestors):
        return [LeafPart((Level(len(array), None),) * leaf.depth, array) for array in arrays]
    values = concatenated(arrays) if arrays else pa.nulls(0, leaf.type)
    levels = []
    length = rows.num_rows
    for field_id, _ in leaf.ancestors:
        level = lists[field_id].level if field_id in lists else Level(length, None)
        levels.append(level)
        length = level.length if level.offsets is None else int(level.offsets[-1])
    return [LeafPart((*levels, Level(len(values), None)), values)]
