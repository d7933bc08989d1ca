"""Striping: a nested Arrow array to its leaves, each with repetition and definition levels.

The mirror of repdef.py. Walking from the outside in, every leaf gets one *entry* per leaf slot plus
one for each empty or null list. An entry carries two small numbers until its page is closed:

* ``depths``: 0 for an entry that starts a row, ``d`` for a further item of the ``d``-th list layer
  from the outside. Repetition is the number of list layers minus that.
* ``codes``: 0, or ``2 * layer + 1`` (null) or ``2 * layer + 2`` (empty list), layers counted from
  the outside. The outermost layer that is null wins. Definition numbers are handed out from the
  inside, and only to what really occurs in the page, so they are known when it is closed.

A null struct keeps a slot in its leaves; a null or empty list has none, whatever range of the child
its offsets name. Items of a fixed-size list of structs are entries that each start a row.

Limits: ``LAYERS_MAX`` layers (codes are one byte).
Not supported: fixed-size lists of structs inside lists (nobody reads them).
Source: enum RepDefLayer of lance.encodings21; levels of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.arrow_parts import Mask, fixed_size_items, list_ranges, nulls_of
from lance_nb.encodings.base import Ints, Levels
from lance_nb.encodings.kernels.ranges import ragged_indices
from lance_nb.encodings.page_encoder import PageLevels
from lance_nb.encodings.repdef import max_visible_definition
from lance_nb.errors import NotSupportedError

LAYERS_MAX = 120
_PASSES_MAX = 4

Marks = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Shape:
    """Which parts of an array own columns: a shape without children is a leaf, whatever its type.

    The one child of a list is its item, the one child of a map the struct of its entries.
    """

    children: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one field for some rows.

    ``depths`` is None as long as every entry starts a row; ``codes`` is None while nothing is null
    or empty; ``visible`` marks the entries that have a slot, None when all have. ``lists`` tells of
    each layer, outermost first, whether it is a list; ``seen`` is a set of codes, as bits.
    """

    num_entries: int
    num_rows: int
    depths: Marks | None = None
    codes: Marks | None = None
    visible: Mask | None = None
    lists: tuple[bool, ...] = ()
    seen: int = 0


@dataclass(frozen=True, slots=True)
class StripedLeaf:
    """One leaf for some rows: ``values`` has one slot per visible entry, null ones included."""

    values: pa.Array
    entries: Entries


def stripe(array: pa.Array, shape: Shape) -> Iterator[StripedLeaf]:
    """Split a column into its leaves, in the order of the schema.

    The array is in storage form (no extension types). Raises NotSupportedError.
    """
    yield from _stripe(array, shape, Entries(len(array), len(array)))


def _stripe(array: pa.Array, shape: Shape, entries: Entries) -> Iterator[StripedLeaf]:
    """Add the layer of ``array``, whose slots are the visible entries, and go further in."""
    if len(entries.lists) >= LAYERS_MAX:
        raise NotSupportedError(f"columns nested more than {LAYERS_MAX} levels deep")
    type_ = array.type
    if not shape.children:
        yield StripedLeaf(array, _item_layer(entries, nulls_of(array)))
    elif pa.types.is_struct(type_):
        below = _item_layer(entries, nulls_of(array))
        for position, child in enumerate(shape.children):
            yield from _stripe(array.field(position), child, below)
    elif pa.types.is_fixed_size_list(type_):
        if any(entries.lists):
            raise NotSupportedError("fixed-size lists of structs inside lists cannot be stored")
        below = _repeat_slots(_item_layer(entries, nulls_of(array)), type_.list_size)
        yield from _stripe(fixed_size_items(array), shape.children[0], below)
    else:
        below, items = _list_layer(entries, array)
        yield from _stripe(items, shape.children[0], below)


def _item_layer(entries: Entries, nulls: Mask | None) -> Entries:
    """Add a layer without lists: slots that are null get its code unless they have an outer one.

    Below a null struct the layer knows null too, used or not: pylance, when it reads a child alone,
    takes the nulls from the child's own layer.
    """
    layer = len(entries.lists)
    has_null = _has_null_slots(entries)
    codes = entries.codes
    if nulls is not None:
        codes, hit = _coded(entries, nulls, 2 * layer + 1)
        has_null |= hit
    return Entries(
        entries.num_entries,
        entries.num_rows,
        entries.depths,
        codes,
        entries.visible,
        (*entries.lists, False),
        entries.seen | (1 << 2 * layer + 1 if has_null else 0),
    )


def _has_null_slots(entries: Entries) -> bool:
    """Tell whether an outer layer is null at a slot."""
    if entries.codes is None:
        return False
    codes = entries.codes if entries.visible is None else entries.codes[entries.visible]
    return bool(codes.any())


def _coded(entries: Entries, slots: Mask, code: int) -> tuple[Marks, bool]:
    """Give ``code`` to the marked slots that have none; also tells whether there are any."""
    if entries.codes is None:
        if entries.visible is None:
            return slots.view(np.uint8) * np.uint8(code), bool(slots.any())
        codes: Marks = np.zeros(entries.num_entries, np.uint8)
    else:
        codes = entries.codes.copy()
    where: Mask
    if entries.visible is None:
        where = slots & (codes == 0)
    else:
        where = entries.visible.copy()
        where[where] = slots
        where &= codes == 0
    codes[where] = code
    return codes, bool(where.any())


def _repeat_slots(entries: Entries, size: int) -> Entries:
    """Turn each slot of a fixed-size list into one entry per item."""
    codes = None if entries.codes is None else np.repeat(entries.codes, size)
    return replace(
        entries,
        num_entries=entries.num_entries * size,
        num_rows=entries.num_rows * size,
        codes=codes,
    )


def _list_layer(entries: Entries, array: pa.Array) -> tuple[Entries, pa.Array]:
    """Add a list layer: returns the entries of the items, and the items that have a slot."""
    layer = len(entries.lists)
    depth = 1 + sum(entries.lists)
    starts, counts = list_ranges(array)
    coded = _item_layer(entries, nulls_of(array))
    codes = coded.codes
    if codes is not None:
        gone = (codes if entries.visible is None else codes[entries.visible]) != 0
        counts[gone] = 0
    coded = replace(coded, lists=(*entries.lists, True))
    if counts.size and not int(counts.min()):
        marked, hit = _coded(coded, counts == 0, 2 * layer + 2)
        seen = coded.seen | (1 << 2 * layer + 2 if hit else 0)
        coded = replace(coded, codes=marked, seen=seen)
    return _opened(coded, counts, depth), used_items(array.values, starts, counts)


def _opened(entries: Entries, counts: Ints, depth: int) -> Entries:
    """Replace each visible entry by those of its items; specials stay as they are."""
    codes, visible = entries.codes, entries.visible
    sizes = counts
    if codes is not None and visible is None:
        sizes = np.maximum(counts, 1)
    elif codes is not None:
        sizes = np.ones(entries.num_entries, np.int64)
        sizes[visible] = np.maximum(counts, 1)
    firsts = np.cumsum(sizes)
    total = int(firsts[-1]) if firsts.size else 0
    firsts -= sizes
    depths: Marks = np.full(total, depth, np.uint8)
    depths[firsts] = 0 if entries.depths is None else entries.depths
    if codes is None:
        return replace(entries, num_entries=total, depths=depths)
    opened: Marks = np.zeros(total, np.uint8)
    opened[firsts] = codes
    return replace(entries, num_entries=total, depths=depths, codes=opened, visible=opened == 0)


def used_items(items: pa.Array, starts: Ints, counts: Ints) -> pa.Array:
    """Return the items of the ranges, one range after the other; a slice when nothing lies between.

    ``starts`` never go down. The ranges of null lists have been emptied before, so what they name
    is left out.
    """
    if not counts.size:
        return items.slice(0, 0)
    first, total = int(starts[0]), int(counts.sum())
    if first + total == int(starts[-1] + counts[-1]):
        return items.slice(first, total)
    used = np.flatnonzero(counts)
    if not used.size:
        return items.slice(0, 0)
    return items.take(pa.array(ragged_indices(starts[used], counts[used])))


# --- closing a page -----------------------------------------------------------------------------


def page_levels(parts: Sequence[Entries]) -> PageLevels:
    """Join runs of rows of one leaf into the levels of a page."""
    lists = parts[0].lists
    seen = 0
    for part in parts:
        seen |= part.seen
    layers, numbers = _layers(lists, seen)
    return PageLevels(
        layers=layers,
        repetition=_repetition(parts, sum(lists)) if any(lists) else None,
        definition=_definition(parts, numbers) if seen else None,
        num_entries=sum(part.num_entries for part in parts),
        max_visible_definition=max_visible_definition(layers),
        num_rows=sum(part.num_rows for part in parts),
    )


def _layers(lists: Sequence[bool], seen: int) -> tuple[tuple[int, ...], Levels]:
    """Choose the kind of every layer, innermost first, and the definition level of every code."""
    numbers: Levels = np.zeros(2 * len(lists) + 2, np.uint16)
    layers = []
    used = 0
    for layer in reversed(range(len(lists))):
        has_null, has_empty = seen >> 2 * layer + 1 & 1, seen >> 2 * layer + 2 & 1
        if has_null:
            used += 1
            numbers[2 * layer + 1] = used
        if has_empty:
            used += 1
            numbers[2 * layer + 2] = used
        layers.append(_LISTS[has_null, has_empty] if lists[layer] else _ITEMS[has_null])
    return tuple(layers), numbers


_ITEMS = {0: pb.REPDEF_ALL_VALID_ITEM, 1: pb.REPDEF_NULLABLE_ITEM}
_LISTS = {
    (0, 0): pb.REPDEF_ALL_VALID_LIST,
    (1, 0): pb.REPDEF_NULLABLE_LIST,
    (0, 1): pb.REPDEF_EMPTYABLE_LIST,
    (1, 1): pb.REPDEF_NULL_AND_EMPTY_LIST,
}


def _repetition(parts: Sequence[Entries], num_lists: int) -> Levels:
    found: Levels = np.empty(sum(part.num_entries for part in parts), np.uint16)
    position = 0
    for part in parts:
        run = found[position : position + part.num_entries]
        position += part.num_entries
        if part.depths is None:
            run[:] = num_lists
        else:
            np.subtract(np.uint16(num_lists), part.depths, out=run)
    return found


def _definition(parts: Sequence[Entries], numbers: Levels) -> Levels:
    found: Levels = np.zeros(sum(part.num_entries for part in parts), np.uint16)
    position = 0
    for part in parts:
        run = found[position : position + part.num_entries]
        position += part.num_entries
        if part.codes is not None:
            _translate(part.codes, part.seen, numbers, run)
    return found


def _translate(codes: Marks, codes_seen: int, numbers: Levels, out: Levels) -> None:
    """Write the definition level of every code; a pass per code beats a look-up per entry."""
    seen = [code for code in range(numbers.size) if codes_seen >> code & 1]
    if all(int(numbers[code]) == code for code in seen):
        np.copyto(out, codes)
    elif len(seen) <= _PASSES_MAX:
        for code in seen:
            out += (codes == code) * numbers[code]
    else:
        np.take(numbers, codes, out=out, mode="clip")
