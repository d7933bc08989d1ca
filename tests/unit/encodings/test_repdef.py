"""Levels by hand: the numbers of each layer, what they unravel to, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import DecodedPage, FixedWidth
from lance_nb.encodings.repdef import (
    Level,
    check_layers,
    check_levels,
    concat_levels,
    max_definition,
    max_visible_definition,
    num_list_layers,
    unravel,
    visible_entries,
)
from lance_nb.errors import CorruptFileError, NotSupportedError

ITEM, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
FULL, NULLS = pb.REPDEF_ALL_VALID_LIST, pb.REPDEF_NULLABLE_LIST
EMPTIES, BOTH = pb.REPDEF_EMPTYABLE_LIST, pb.REPDEF_NULL_AND_EMPTY_LIST


def page(
    num_values: int,
    layers: list[int],
    rep: list[int] | None = None,
    levels: list[int] | None = None,
) -> DecodedPage:
    values = FixedWidth(8, num_values, np.zeros(num_values, np.uint8))
    as_levels = lambda found: None if found is None else np.array(found, np.uint16)
    return DecodedPage(values, as_levels(rep), as_levels(levels), tuple(layers))


def plain(level: Level) -> tuple[object, object]:
    """Validity as 0/1 and offsets, both as lists or None."""
    validity = None if level.validity is None else level.validity.astype(int).tolist()
    return validity, None if level.offsets is None else level.offsets.tolist()


@pytest.mark.parametrize(
    ("layers", "visible", "most", "lists"),
    [
        ([ITEM], 0, 0, 0),
        ([NULLABLE], 1, 1, 0),
        ([NULLABLE, NULLABLE], 2, 2, 0),
        ([ITEM, FULL], 0, 0, 1),
        ([NULLABLE, BOTH], 1, 3, 1),
        ([NULLABLE, NULLABLE, NULLS, NULLABLE, EMPTIES, NULLABLE], 2, 6, 2),
    ],
)
def test_levels_are_numbered_from_the_leaf_out(
    layers: list[int], visible: int, most: int, lists: int
) -> None:
    assert max_visible_definition(tuple(layers)) == visible
    assert max_definition(tuple(layers)) == most
    assert num_list_layers(tuple(layers)) == lists


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (page(3, [ITEM]), [(None, None)]),
        (page(3, [NULLABLE], None, [0, 1, 0]), [([1, 0, 1], None)]),
        (page(3, [NULLABLE], None, [0, 0, 0]), [(None, None)]),
        # struct: 1 null leaf, 2 null struct
        (page(3, [NULLABLE, NULLABLE], None, [0, 1, 2]), [([1, 1, 0], None), ([1, 0, 0], None)]),
        # the example of the module: [[1, 2], [], null, [4, 5000]]
        (
            page(4, [ITEM, BOTH], [1, 0, 1, 1, 1, 0], [0, 0, 2, 1, 0, 0]),
            [([1, 1, 0, 1], [0, 2, 2, 2, 4]), (None, None)],
        ),
        (page(3, [ITEM, FULL], [1, 0, 1]), [(None, [0, 2, 3]), (None, None)]),
        (page(1, [ITEM, EMPTIES], [1, 1], [1, 0]), [(None, [0, 0, 1]), (None, None)]),
        (page(1, [ITEM, NULLS], [1, 1], [1, 0]), [([0, 1], [0, 0, 1]), (None, None)]),
        (
            page(3, [NULLABLE, BOTH], [1, 0, 0, 1], [0, 1, 0, 3]),
            [(None, [0, 3, 3]), ([1, 0, 1], None)],
        ),
        # [[[1], []], null, [null]]: 1 null inner, 2 empty inner, 3 null outer
        (
            page(1, [ITEM, BOTH, NULLS], [2, 1, 2, 2], [0, 2, 3, 1]),
            [([1, 0, 1], [0, 2, 2, 3]), ([1, 1, 0], [0, 1, 1, 1]), (None, None)],
        ),
        # {"a": [7]}, null, {"a": null}: 1 null list, 2 null struct
        (
            page(1, [ITEM, NULLS, NULLABLE], [1, 1, 1], [0, 2, 1]),
            [([1, 0, 1], None), ([1, 0, 0], [0, 1, 1, 1]), (None, None)],
        ),
        # [{"x": 1}, null]: 1 null struct inside the list, which has a leaf slot
        (
            page(2, [ITEM, NULLABLE, FULL], [1, 0], [0, 1]),
            [(None, [0, 2]), ([1, 0], None), (None, None)],
        ),
        (page(0, [ITEM, BOTH], [], []), [(None, [0]), (None, None)]),
        (page(0, [ITEM, BOTH]), [(None, [0]), (None, None)]),
    ],
)
def test_levels_unravel(built: DecodedPage, expected: list[tuple[object, object]]) -> None:
    assert [plain(level) for level in unravel(built)] == expected


def test_every_entry_is_visible_without_special_levels() -> None:
    assert visible_entries(None, (NULLABLE, BOTH)) is None
    assert visible_entries(np.array([0, 1], np.uint16), (NULLABLE, FULL)) is None
    shown = visible_entries(np.array([0, 1, 2], np.uint16), (NULLABLE, NULLS))
    assert shown is not None
    assert shown.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        (page(2, [ITEM, FULL]), "repetition levels on a page of lists"),
        (page(2, [ITEM, FULL], [0, 1]), "begins with a new row"),
        (page(2, [ITEM, FULL], [0, 0]), "begins with a new row"),
        (page(2, [ITEM, FULL, FULL], [1, 0]), "begins with a new row"),
        (page(2, [NULLABLE], None, [0, 1, 0]), "2 definition levels with a value"),
        (page(2, [NULLABLE, BOTH], [1, 1], [2, 0]), "2 definition levels with a value"),
    ],
)
def test_damaged_levels_are_refused(built: DecodedPage, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        unravel(built)


def test_layers_are_checked() -> None:
    assert check_layers([ITEM, BOTH]) == (ITEM, BOTH)
    with pytest.raises(CorruptFileError, match="at least one"):
        check_layers([])
    for unknown in (0, 7, 2**31 - 1):
        with pytest.raises(NotSupportedError, match=f"layer {unknown}"):
            check_layers([unknown])


def test_levels_beyond_the_layers_are_refused() -> None:
    check_levels(np.array([1, 0], np.uint16), np.array([3, 0], np.uint16), (NULLABLE, BOTH))
    with pytest.raises(CorruptFileError, match="repetition levels up to 1"):
        check_levels(np.array([2], np.uint16), None, (NULLABLE, BOTH))
    with pytest.raises(CorruptFileError, match="definition levels up to 3"):
        check_levels(None, np.array([4], np.uint16), (NULLABLE, BOTH))
    check_levels(np.zeros(0, np.uint16), np.zeros(0, np.uint16), (ITEM,))


def test_runs_of_one_layer_join() -> None:
    some = Level(2, np.array([True, False]), np.array([0, 3, 3]))
    joined = concat_levels([some, Level(1, None, np.array([0, 2])), some])
    assert plain(joined) == ([1, 0, 1, 1, 0], [0, 3, 3, 5, 8, 8])
    assert joined.length == 5
    assert plain(concat_levels([Level(1, None), Level(2, None)])) == (None, None)
    assert concat_levels([some]) is some


def test_runs_of_different_nesting_do_not_join() -> None:
    lists = Level(1, None, np.array([0, 2]))
    with pytest.raises(CorruptFileError, match="same nesting on every page"):
        concat_levels([lists, Level(1, None)])
