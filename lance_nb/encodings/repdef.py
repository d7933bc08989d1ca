"""Repetition and definition levels to validity and offsets, and back to rows.

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

Limits: levels are uint16. Source: enum RepDefLayer of lance.encodings21; guide tests on pylance
14.0.2 files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import AnyLevels, DecodedPage, Ints, corrupt
from lance_nb.errors import NotSupportedError

Mask = npt.NDArray[np.bool_]

_ITEMS: dict[int, int] = {encodings21.REPDEF_ALL_VALID_ITEM: 0, encodings21.REPDEF_NULLABLE_ITEM: 1}
# layer -> (takes a "null" level, takes an "empty" level)
_LISTS: dict[int, tuple[bool, bool]] = {
    encodings21.REPDEF_ALL_VALID_LIST: (False, False),
    encodings21.REPDEF_NULLABLE_LIST: (True, False),
    encodings21.REPDEF_EMPTYABLE_LIST: (False, True),
    encodings21.REPDEF_NULL_AND_EMPTY_LIST: (True, True),
}
_LEVELS: dict[int, int] = _ITEMS | {layer: sum(takes) for layer, takes in _LISTS.items()}
LEVEL_MAX = 0xFFFF


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
    if rep is not None and rep.size and int(rep.max()) > num_list_layers(layers):
        raise corrupt(f"repetition levels up to {num_list_layers(layers)}", str(int(rep.max())))
    if definition is not None and definition.size:
        top = int(definition.max())
        if top > max_definition(layers):
            raise corrupt(f"definition levels up to {max_definition(layers)}", str(top))


def unravel(page: DecodedPage) -> tuple[Level, ...]:
    """Turn the levels of a page into one Level per layer, outermost first.

    The rows of ``page`` are whole: its first entry starts a row.
    """
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
            levels.append(_item_level(definition, visible, num_slots, base, layer))
            base += _LEVELS[layer]
            continue
        list_number += 1
        upper = base + _LEVELS[layer] + max_visible_definition(page.layers[position + 1 :])
        entries = _Entries(rep, definition, visible)
        starts, definition, visible, level = _list_level(entries, list_number, layer, base, upper)
        if rep is not None and list_number < num_lists:
            rep = rep.take(starts)
        levels.append(level)
        num_slots = level.length
        base += _LEVELS[layer]
    return tuple(reversed(levels))


@dataclass(frozen=True, slots=True)
class _Entries:
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
    entries: _Entries, list_number: int, layer: int, base: int, upper: int
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
        if int(offsets[-1]) != int(np.count_nonzero(visible)):
            raise corrupt("empty and null lists that hold nothing", "one with items")
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
    offsets = np.zeros(length + 1, np.int64)
    row = 1
    for part in parts:
        if part.offsets is None:
            raise corrupt("the same nesting on every page", "a list layer on some pages only")
        offsets[row : row + part.length] = part.offsets[1:] + offsets[row - 1]
        row += part.length
    return Level(length, validity, offsets)
