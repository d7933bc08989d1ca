"""Repetition and definition levels: to validity and offsets, and from nested Arrow arrays.

Layout: a page of file version 2.1 or 2.2 stores one *entry* per leaf slot plus one for each empty
or null list. Its ``layers`` go from the leaf outwards. Definition levels are numbered in that
order: a layer takes one number for "null item", one for "null list", one for "empty list" (null
first), none when everything is valid; 0 is a valid leaf. Repetition ``j`` starts a new list at the
``j``-th list layer (1 = innermost), 0 continues the innermost list, and the largest value starts a
new row.

Worked example, ``list<int32>`` ``[[1, 2], [], null, [4, 5000]]`` with layers (all-valid item,
null-and-empty list)::

    rep  1 0 1 1 1 0
    def  0 0 2 1 0 0        1 = null list, 2 = empty list

Writing (``stripe``): walking from the outside in, an entry carries two small numbers until its page
is closed:

* ``depths``: 0 for an entry that starts a row, ``d`` for a further item of the ``d``-th list layer
  from the outside. Repetition is the number of list layers minus that.
* ``codes``: 0, or ``2 * layer + 1`` (null) or ``2 * layer + 2`` (empty list), layers counted from
  the outside. The outermost layer that is null wins. Definition levels are numbered from the
  inside, and only where they occur in the page, so they are known when it is closed.

A null struct keeps a slot in its leaves; a null or empty list has none, whatever range of the child
its offsets name. Items of a fixed-size list of structs are entries that each start a row.

Limits: levels are uint16; ``LAYERS_MAX`` layers are written (codes are one byte).
Not supported: writing fixed-size lists of structs inside lists (no reader supports them).
Source: enum RepDefLayer of lance.encodings21; levels of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb._pb import encodings21
from lance_nb.encodings.arrow_parts import Mask, fixed_size_items, list_ranges, nulls_of
from lance_nb.encodings.base import AnyLevels, DecodedPage, Ints, Levels, corrupt
from lance_nb.encodings.compress_base import PageLevels
from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.ranges import ragged_indices
from lance_nb.errors import NotSupportedError
from lance_nb.value_classes import dataclass

_ITEMS: dict[int, int] = {encodings21.REPDEF_ALL_VALID_ITEM: 0, encodings21.REPDEF_NULLABLE_ITEM: 1}
# layer -> (takes a "null" level, takes an "empty" level)
_LISTS: dict[int, tuple[bool, bool]] = {
    encodings21.REPDEF_ALL_VALID_LIST: (False, False),
    encodings21.REPDEF_NULLABLE_LIST: (True, False),
    encodings21.REPDEF_EMPTYABLE_LIST: (False, True),
    encodings21.REPDEF_NULL_AND_EMPTY_LIST: (True, True),
}
_LEVELS: dict[int, int] = _ITEMS | {layer: sum(takes) for layer, takes in _LISTS.items()}

LAYERS_MAX = 120
_PASSES_MAX = 4
Marks = npt.NDArray[np.uint8]
_ITEM_LAYERS = {0: encodings21.REPDEF_ALL_VALID_ITEM, 1: encodings21.REPDEF_NULLABLE_ITEM}
_LIST_LAYERS = {
    (0, 0): encodings21.REPDEF_ALL_VALID_LIST,
    (1, 0): encodings21.REPDEF_NULLABLE_LIST,
    (0, 1): encodings21.REPDEF_EMPTYABLE_LIST,
    (1, 1): encodings21.REPDEF_NULL_AND_EMPTY_LIST,
}


@dataclass(frozen=True, slots=True)
class Level:
    """One nesting layer of a leaf, for a run of rows.

    ``validity`` is one bool per slot, None when all are valid. ``offsets`` (list layers only) has
    ``length + 1`` items starting at 0 and counts slots of the next inner layer.
    """

    length: int
    validity: Mask | None
    offsets: Ints | None = None


def check_layers(layers: Sequence[int]) -> tuple[int, ...]:
    """Return the layers as a tuple. Raises NotSupportedError for one we do not know."""
    for layer in layers:
        if layer not in _LEVELS:
            raise NotSupportedError(f"repetition/definition layer {layer} is not known")
    if not layers:
        raise corrupt("at least one repetition/definition layer", "none")
    return tuple(layers)


@lru_cache(maxsize=256)
def num_list_layers(layers: tuple[int, ...]) -> int:
    """Count the list layers, which is also the repetition level that starts a row."""
    return sum(layer in _LISTS for layer in layers)


@lru_cache(maxsize=256)
def max_visible_definition(layers: tuple[int, ...]) -> int:
    """Return the largest definition level that still has a leaf slot."""
    total = 0
    for layer in layers:
        if layer in _LISTS:
            break
        total += _LEVELS[layer]
    return total


@lru_cache(maxsize=256)
def max_definition(layers: tuple[int, ...]) -> int:
    """Return the largest definition level that the layers allow."""
    return sum(_LEVELS[layer] for layer in layers)


def visible_entries(definition: AnyLevels | None, layers: tuple[int, ...]) -> Mask | None:
    """Mark the entries that have a leaf slot; None when all have one."""
    if definition is None or max_definition(layers) == max_visible_definition(layers):
        return None
    return definition <= max_visible_definition(layers)


def check_levels(
    rep: AnyLevels | None, definition: AnyLevels | None, layers: tuple[int, ...]
) -> None:
    """Refuse levels that no writer could have meant. Raises CorruptFileError."""
    if rep is not None and rep.size and int(np.maximum.reduce(rep)) > num_list_layers(layers):
        raise corrupt(f"repetition levels up to {num_list_layers(layers)}", str(int(rep.max())))
    if definition is not None and definition.size:
        top = int(np.maximum.reduce(definition))
        if top > max_definition(layers):
            raise corrupt(f"definition levels up to {max_definition(layers)}", str(top))


def unravel(page: DecodedPage) -> tuple[Level, ...]:
    """Turn the levels of a page into one Level per layer, outermost first.

    The rows of ``page`` are whole: its first entry starts a row.
    """
    if compiled.loops is not None:
        unravelled = _unravel_compiled(compiled.loops, page)
        if unravelled is not None:
            return unravelled
    num_slots = page.values.num_values
    rep, definition = page.rep, page.definition
    num_lists = num_list_layers(page.layers)
    if num_lists and rep is None:
        if num_slots or definition is not None:
            raise corrupt("repetition levels on a page of lists", "none")
        rep = np.zeros(0, np.uint16)
    levels: list[Level] = []
    base = 0  # definition levels used up by the layers inside this one
    list_number = 0
    visible = visible_entries(definition, page.layers)
    for position, layer in enumerate(page.layers):
        if layer in _ITEMS:
            levels.append(_item_level(definition, visible, num_slots, base=base, layer=layer))
            base += _LEVELS[layer]
            continue
        list_number += 1
        upper = base + _LEVELS[layer] + max_visible_definition(page.layers[position + 1 :])
        entries = _LayerEntries(rep, definition, visible)
        starts, definition, visible, level = _list_level(
            entries, list_number, layer, base=base, upper=upper
        )
        if rep is not None and list_number < num_lists:
            rep = rep.take(starts)
        levels.append(level)
        num_slots = level.length
        base += _LEVELS[layer]
    return tuple(reversed(levels))


_NO_LEVELS: Marks = np.zeros(0, np.uint8)


def _unravel_compiled(loops: ModuleType, page: DecodedPage) -> tuple[Level, ...] | None:
    """Unravel with compiled loops; None for levels that the numpy form will refuse.

    What has a slot in a layer is always told by the largest definition level that has one.
    """
    rep, definition = page.rep, page.definition
    num_lists = num_list_layers(page.layers)
    if num_lists and rep is None:
        return None
    num_slots = page.values.num_values
    visible_max = max_visible_definition(page.layers)
    levels: list[Level] = []
    base = list_number = 0
    for position, layer in enumerate(page.layers):
        if layer in _ITEMS:
            level = _compiled_item_level(
                loops,
                definition if _LEVELS[layer] else None,
                num_slots,
                visible_max=visible_max,
                base=base,
            )
            if level is None:
                return None
            levels.append(level)
            base += _LEVELS[layer]
            continue
        list_number += 1
        later_layers = page.layers[position + 1 :]
        upper = base + _LEVELS[layer] + max_visible_definition(later_layers)
        of_rep = (rep.view(np.uint8), rep.itemsize) if rep is not None else (_NO_LEVELS, 1)
        of_definition = (_NO_LEVELS, 0)
        if definition is not None:
            of_definition = (definition.view(np.uint8), definition.itemsize)
        counted = loops.count_lists(*of_rep, *of_definition, list_number, upper)
        if counted is None:
            return None
        num_starts, num_slots = counted
        takes_null, takes_empty = _LISTS[layer]
        empty = base + _LEVELS[layer] if takes_empty else -1
        more_lists, more_levels = num_list_layers(later_layers), max_definition(later_layers)
        next_rep = np.empty((num_starts + 1) * of_rep[1] * bool(more_lists), np.uint8)
        next_definition = np.empty(
            (num_starts + 1) * of_definition[1] * bool(more_levels), np.uint8
        )
        offsets, validity = np.empty(num_slots + 1, np.int64), np.empty(num_slots + 1, np.bool_)
        num_valid = loops.fold_lists(
            *of_rep, *of_definition, list_number, visible_max, upper, base, empty,
            next_rep, next_definition, offsets, validity.view(np.uint8),
        )  # fmt: skip
        if num_valid < 0:
            return None
        has_nulls = takes_null or upper != base + _LEVELS[layer]
        may_be_null = definition is not None and has_nulls and num_valid < num_slots
        levels.append(Level(num_slots, validity[:-1] if may_be_null else None, offsets))
        if rep is not None:
            rep = next_rep.view(rep.dtype)[:-1]
        if definition is not None:
            definition = next_definition.view(definition.dtype)[:-1] if more_levels else None
        visible_max = upper
        base += _LEVELS[layer]
    return tuple(reversed(levels))


def _compiled_item_level(
    loops: ModuleType, definition: AnyLevels | None, num_slots: int, visible_max: int, base: int
) -> Level | None:
    if definition is None:
        return Level(num_slots, None)
    validity = np.empty(num_slots + 1, np.bool_)
    room = validity.view(np.uint8)
    levels = definition.view(np.uint8)
    num_valid = loops.item_validity(levels, definition.itemsize, visible_max, base, room)
    if num_valid < 0:
        return None
    return Level(num_slots, None if num_valid == num_slots else validity[:-1])


@dataclass(frozen=True, slots=True)
class _LayerEntries:
    rep: AnyLevels | None
    definition: AnyLevels | None
    visible: Mask | None


def _item_level(
    definition: AnyLevels | None, visible: Mask | None, num_slots: int, base: int, layer: int
) -> Level:
    if definition is None or not _LEVELS[layer]:
        return Level(num_slots, None)
    seen = definition if visible is None else definition.compress(visible)
    if seen.size != num_slots:
        raise corrupt(f"{num_slots} definition levels with a value", str(seen.size))
    valid = seen <= base
    return Level(num_slots, None if bool(valid.all()) else valid)


def _list_level(
    entries: _LayerEntries, list_number: int, layer: int, base: int, upper: int
) -> tuple[Ints, AnyLevels | None, Mask | None, Level]:
    """Fold one list layer: returns the entries that survive (the list starts) and the layer.

    ``upper`` is the largest definition level with which the list itself still has a slot.
    """
    rep = entries.rep
    if rep is None:
        raise corrupt("repetition levels on a page of lists", "none")
    starts = np.flatnonzero(rep >= list_number)
    if rep.size and (not starts.size or starts[0]):
        raise corrupt("a page that begins with a new row", f"repetition level {int(rep[0])}")
    offsets = _child_offsets(entries.visible, starts, rep.size)
    definition = None if entries.definition is None else entries.definition.take(starts)
    validity: Mask | None = None
    still_visible: Mask | None = None
    own = definition
    if definition is not None:
        shown = definition <= upper
        if not bool(shown.all()):
            still_visible = shown
            counts = np.diff(offsets).compress(shown)
            own = definition.compress(shown)
            offsets = np.zeros(counts.size + 1, np.int64)
            np.cumsum(counts, out=offsets[1:])
        validity = _list_validity(own, layer, base, upper)
    level = Level(offsets.size - 1, validity, offsets)
    return starts, definition, still_visible, level


def _child_offsets(visible: Mask | None, starts: Ints, num_entries: int) -> Ints:
    """Return where the children of each group begin among the visible entries, and their number.

    An entry that is not visible stands for an empty or null list, so it is alone in its group.
    """
    offsets = np.empty(starts.size + 1, np.int64)
    offsets[:-1] = starts
    offsets[-1] = num_entries
    if visible is not None:
        hidden = ~visible.take(starts)
        kind = np.int32 if num_entries < 1 << 31 else np.int64  # half the width, twice as fast
        offsets[1:] -= np.cumsum(hidden.astype(kind), dtype=kind)
        num_visible = int(np.count_nonzero(visible))
        if int(offsets[-1]) != num_visible:
            raise corrupt(f"{num_visible} items in lists that are not empty", f"{int(offsets[-1])}")
    return offsets


def _list_validity(own: AnyLevels | None, layer: int, base: int, upper: int) -> Mask | None:
    """Mark the lists that are not null, neither themselves nor by a struct around them."""
    takes_null, takes_empty = _LISTS[layer]
    if own is None or (not takes_null and upper == base + _LEVELS[layer]):
        return None
    valid = own <= base
    if takes_empty:
        valid |= own == base + _LEVELS[layer]
    return None if bool(valid.all()) else valid


def concat_levels(parts: Sequence[Level]) -> Level:
    """Join the same layer of consecutive runs of rows."""
    if len(parts) == 1:
        return parts[0]
    length = sum(part.length for part in parts)
    validity = None
    if any(part.validity is not None for part in parts):
        validity = np.concatenate(
            [
                np.ones(part.length, bool) if part.validity is None else part.validity
                for part in parts
            ]
        )
    if parts[0].offsets is None:
        return Level(length, validity)
    offsets = np.empty(length + 1, np.int64)
    offsets[0] = 0
    row = 1
    for part in parts:
        if part.offsets is None:
            raise corrupt("the same nesting on every page", "a list layer on some pages only")
        np.add(part.offsets[1:], offsets[row - 1], out=offsets[row : row + part.length])
        row += part.length
    return Level(length, validity, offsets)


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
        num_entries=entries.num_entries,
        num_rows=entries.num_rows,
        depths=entries.depths,
        codes=codes,
        visible=entries.visible,
        lists=(*entries.lists, False),
        seen=entries.seen | (1 << 2 * layer + 1 if has_null else 0),
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
        is_vacant = (codes if entries.visible is None else codes[entries.visible]) != 0
        counts[is_vacant] = 0
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
    return pc.take(items, pa.array(ragged_indices(starts[used], counts[used])))


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


def leaf_levels(num_rows: int, nulls: Mask | None) -> PageLevels:
    """Return the levels of a page of a column that is not nested, the same as ``page_levels``."""
    layers = (_ITEM_LAYERS[nulls is not None],)
    return PageLevels(
        layers=layers,
        repetition=None,
        definition=None if nulls is None else nulls.astype(np.uint16),
        num_entries=num_rows,
        max_visible_definition=max_visible_definition(layers),
        num_rows=num_rows,
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
        layers.append(_LIST_LAYERS[has_null, has_empty] if lists[layer] else _ITEM_LAYERS[has_null])
    return tuple(layers), numbers


def _repetition(parts: Sequence[Entries], num_lists: int) -> Levels:
    levels: Levels = np.empty(sum(part.num_entries for part in parts), np.uint16)
    position = 0
    for part in parts:
        run = levels[position : position + part.num_entries]
        position += part.num_entries
        if part.depths is None:
            run[:] = num_lists
        else:
            np.subtract(np.uint16(num_lists), part.depths, out=run)
    return levels


def _definition(parts: Sequence[Entries], numbers: Levels) -> Levels:
    levels: Levels = np.zeros(sum(part.num_entries for part in parts), np.uint16)
    position = 0
    for part in parts:
        run = levels[position : position + part.num_entries]
        position += part.num_entries
        if part.codes is not None:
            _translate(part.codes, part.seen, numbers, run)
    return levels


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
