"""A slow, plain reference for repetition and definition levels: nested Python values and back.

A shape is the nesting on the way to one leaf, outermost first: ``("list", "struct", "leaf")``. The
values of a struct are one-tuples, those of a list are lists, None is null anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import DecodedPage, FixedWidth
from lance_nb.encodings.repdef import Level

LIST_LAYERS = {
    (False, False): pb.REPDEF_ALL_VALID_LIST,
    (True, False): pb.REPDEF_NULLABLE_LIST,
    (False, True): pb.REPDEF_EMPTYABLE_LIST,
    (True, True): pb.REPDEF_NULL_AND_EMPTY_LIST,
}


@dataclass(frozen=True)
class Entry:
    """One entry of a page: levels, and the leaf value if there is a slot for one."""

    rep: int
    definition: int
    visible: bool
    value: int | None = None


@dataclass(frozen=True)
class Shredded:
    """Entries of a page, row by row, and the layers (leaf first) that explain them."""

    rows: list[list[Entry]]
    layers: tuple[int, ...]

    @property
    def entries(self) -> list[Entry]:
        return [entry for row in self.rows for entry in row]

    @property
    def num_lists(self) -> int:
        return sum(layer in LIST_LAYERS.values() for layer in self.layers)


def shred(
    rows: Sequence[Any], shape: Sequence[str], spare: Sequence[tuple[bool, bool]] = ()
) -> Shredded:
    """Turn rows into entries. ``spare[depth]`` makes a layer nullable / emptyable without need."""
    needs = [[False, False] for _ in shape]
    for row in rows:
        _survey(row, shape, 0, needs)
    for need, more in zip(needs, spare, strict=False):
        need[0] |= more[0]
        need[1] |= more[1]
    layers, null_at, empty_at, used = [], {}, {}, 0
    for depth in reversed(range(len(shape))):
        takes_null, takes_empty = needs[depth]
        if shape[depth] == "list":
            layers.append(LIST_LAYERS[takes_null, takes_empty])
        else:
            takes_empty = False
            layers.append(pb.REPDEF_NULLABLE_ITEM if takes_null else pb.REPDEF_ALL_VALID_ITEM)
        if takes_null:
            null_at[depth] = used = used + 1
        if takes_empty:
            empty_at[depth] = used = used + 1
    found: list[list[Entry]] = []
    for row in rows:
        found.append([])
        _walk(row, shape, 0, list(shape).count("list"), (null_at, empty_at, found[-1]))
    return Shredded(found, tuple(layers))


def _survey(value: Any, shape: Sequence[str], depth: int, needs: list[list[bool]]) -> None:
    if value is None:
        needs[depth][0] = True
    elif shape[depth] == "struct":
        _survey(value[0], shape, depth + 1, needs)
    elif shape[depth] == "list":
        needs[depth][1] |= not value
        for item in value:
            _survey(item, shape, depth + 1, needs)


def _walk(value: Any, shape: Sequence[str], depth: int, rep: int, state: Any) -> None:
    null_at, empty_at, out = state
    lists_inside = list(shape[depth:]).count("list")
    if value is None:
        out.append(Entry(rep, null_at[depth], lists_inside == 0))
    elif shape[depth] == "leaf":
        out.append(Entry(rep, 0, visible=True, value=value))
    elif shape[depth] == "struct":
        _walk(value[0], shape, depth + 1, rep, state)
    elif not value:
        out.append(Entry(rep, empty_at[depth], visible=False))
    else:
        for number, item in enumerate(value):
            _walk(item, shape, depth + 1, lists_inside - 1 if number else rep, state)


def page_of(shredded: Shredded) -> DecodedPage:
    """Build the decoded page that holds all entries."""
    entries = shredded.entries
    rep = np.array([entry.rep for entry in entries], np.uint16)
    definition = np.array([entry.definition for entry in entries], np.uint16)
    leaves = [entry.value or 0 for entry in entries if entry.visible]
    data = np.array(leaves, "<i4").view(np.uint8)
    return DecodedPage(
        FixedWidth(32, len(leaves), data),
        rep if shredded.num_lists else None,
        definition if definition.any() else None,
        shredded.layers,
    )


def rebuild(levels: Sequence[Level], leaves: Sequence[int], shape: Sequence[str]) -> list[Any]:
    """Put nested values together again from levels (outermost first) and leaf values."""
    return [_value(levels, leaves, shape, 0, row) for row in range(levels[0].length)]


def _value(
    levels: Sequence[Level], leaves: Sequence[int], shape: Sequence[str], depth: int, slot: int
) -> Any:
    level = levels[depth]
    if level.validity is not None and not level.validity[slot]:
        return None
    if shape[depth] == "leaf":
        return int(leaves[slot])
    if level.offsets is None:
        return (_value(levels, leaves, shape, depth + 1, slot),)
    first, last = int(level.offsets[slot]), int(level.offsets[slot + 1])
    return [_value(levels, leaves, shape, depth + 1, item) for item in range(first, last)]


SHAPES = st.lists(st.sampled_from(["list", "struct"]), max_size=4).map(
    lambda kinds: [*kinds, "leaf"]
)


SPARE = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=5, max_size=5)


def values(shape: list[str]) -> st.SearchStrategy[Any]:
    """Nested values of a shape, with nulls and empty lists at every layer."""
    if shape[0] == "leaf":
        return st.none() | st.integers(0, 99)
    inner = values(shape[1:])
    if shape[0] == "struct":
        return st.none() | inner.map(lambda value: (value,))
    return st.none() | st.lists(inner, max_size=4)


@st.composite
def nested_rows(draw: st.DrawFn, max_size: int = 12) -> tuple[list[str], list[Any]]:
    shape = draw(SHAPES)
    return shape, draw(st.lists(values(shape), max_size=max_size))
