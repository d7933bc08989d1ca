"""Which data file of a fragment holds which field, by the ids of the outcome of a merge.

Source: message DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.transactions.branch_merge.matching import file_name
from lance_nb.transactions.branch_merge.merge_base import Side
from lance_nb.transactions.branch_merge.places import FilePlaces

Homes = dict[int, str]


def translated_files(
    s: Fragment, fields: Mapping[int, int], places: FilePlaces
) -> tuple[DataFile, ...]:
    """Return the files of a fragment of the source as the target names them."""
    found = []
    for file in s.files:
        ids = tuple(fields.get(one, TOMBSTONE) for one in file.fields)
        if any(one != TOMBSTONE for one in ids):
            found.append(replace(places.file(file), fields=ids))
    return tuple(found)


def homes_of(side: Side, fragment: Fragment, fields: Mapping[int, int] | None = None) -> Homes:
    """Return which file holds which field, by the ids of the outcome."""
    found: Homes = {}
    for file in fragment.files:
        name = file_name(side, file)
        for one in file.fields:
            number = one if fields is None else fields.get(one, TOMBSTONE)
            if number >= 0:
                found[number] = name
    return found


def same_deletions(one: Side, left: Fragment, other: Side, right: Fragment) -> bool:
    """Tell whether two fragments have the same deletion file."""
    mine = one.places.of_deletions(left.id, left.deletion_file)
    return mine == other.places.of_deletions(right.id, right.deletion_file)
