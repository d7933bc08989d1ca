"""ORDER BY: rows of a scan in the order of some columns, with a limit in bounded memory.

Nulls come last unless ``nulls_first`` says otherwise, floats are in the total order of IEEE 754
(-0.0 before 0.0; a NaN after every number, or before if it has the sign), and rows that are equal
keep the order of the scan. Only the key columns are decoded to sort; the others are read for the
rows of the result.

Limits: with a limit, memory holds ``offset + limit`` keys and one window; without one, all keys.
Not supported: sorting by lists, structs and maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError, NotSupportedError, PredicateError
from lance_nb.format.schema import Schema
from lance_nb.table.addresses import Addresses, addresses_of
from lance_nb.table.filtered_scan import RowChoice, Selected, selected_table
from lance_nb.table.predicate.coercion import plain
from lance_nb.table.predicate.comparison import float_rank
from lance_nb.table.predicate.expression import Column, evaluate
from lance_nb.table.projection import Projection, bare_table, project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

# Sorting anew is worth its price from this many waiting rows on.
_HELD_ROWS_MIN = 65_536


@dataclass(frozen=True, slots=True)
class ColumnOrdering:
    """One key of ``order_by`` in scans.

    Examples:
        >>> last = lance_nb.ColumnOrdering("id", ascending=False, nulls_first=True)
        >>> ds.to_table(["id"], order_by=[last], limit=2).to_pydict()
        {'id': [9, 8]}
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


def orderings_of(order_by: Any) -> tuple[ColumnOrdering, ...]:
    """Read the argument: names, ColumnOrdering-like objects, or dicts of their fields."""
    if order_by is None:
        return ()
    orderings = []
    for term in [order_by] if isinstance(order_by, str) else order_by:
        if isinstance(term, str):
            orderings.append(ColumnOrdering(term))
        elif isinstance(term, dict):
            unknown = set(term) - {"column_name", "ascending", "nulls_first"}
            if unknown or "column_name" not in term:
                raise InvalidInputError(f"order_by: {term!r} is no ordering of a column")
            orderings.append(ColumnOrdering(**term))
        elif hasattr(term, "column_name"):
            orderings.append(
                ColumnOrdering(
                    str(term.column_name),
                    bool(getattr(term, "ascending", True)),
                    bool(getattr(term, "nulls_first", False)),
                )
            )
        else:
            raise InvalidInputError(
                f"order_by is a list of names or ColumnOrdering, not of {type(term).__name__}"
            )
    return tuple(orderings)


def key_projection(schema: Schema, orderings: Sequence[ColumnOrdering]) -> Projection:
    """Return the columns to sort by. Raises ColumnNotFoundError, NotSupportedError."""
    names = dict.fromkeys(ordering.column_name for ordering in orderings)
    keys = project(schema, list(names))
    for field in keys.schema:
        type_ = plain(Column((field.name,), field.type)).type
        if pt.is_nested(type_):
            raise NotSupportedError(f"rows cannot be ordered by {field.name!r}, a {field.type}")
    return keys


def sorted_rows(
    snapshot: Snapshot,
    choice: RowChoice,
    orderings: Sequence[ColumnOrdering],
    limit: int | None,
    offset: int,
) -> Addresses:
    """Return the rows of a scan in order, offset and limit applied."""
    keys = key_projection(snapshot.manifest.schema, orderings)
    most = None if limit is None else limit + offset
    best: list[Selected | Addresses] = []
    waiting: list[pa.Table] = []
    held = 0
    for selected in select_rows(snapshot, choice, keys):
        best.append(
            Selected(
                selected.fragment,
                selected.physical,
                selected.positions,
                decoded={},
                deleted=selected.deleted,
            )
        )
        waiting.append(sort_keys(selected_table(snapshot, keys, selected), orderings))
        held += selected.num_rows
        if most is not None and held > 2 * most + _HELD_ROWS_MIN:
            rows = pa.concat_tables(waiting)
            places = sort_places(rows, most)
            best = [addresses_of(best).take(places)]
            waiting = [pc.take(rows, from_integers(places)).combine_chunks()]
            held = int(places.size)
    if not waiting:
        return addresses_of([])
    places = sort_places(pa.concat_tables(waiting), most)
    return addresses_of(best).take(places[offset:])


def sort_keys(table: pa.Table, orderings: Sequence[ColumnOrdering]) -> pa.Table:
    """Turn key columns into columns that sort rightly in ascending or descending order.

    Names end in ``+`` or ``-`` for the direction.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for number, ordering in enumerate(orderings):
        stored = table.column(ordering.column_name)
        path = (ordering.column_name,)
        values = evaluate(plain(Column(path, stored.type)), {path: stored})
        direction = "+" if ordering.ascending else "-"
        columns[f"{number}null{'-' if ordering.nulls_first else '+'}"] = pc.is_null(values).cast(
            pa.int8()
        )
        if not pt.is_null(values.type):
            columns[f"{number}value{direction}"] = float_rank(values)
    return pa.table(columns)


def sort_places(keys: pa.Table, most: int | None = None) -> Ints:
    """Return the places of the rows in order, the first ``most``; equal rows keep theirs.

    Raises PredicateError for a type that Arrow cannot sort.
    """
    directions = {"+": "ascending", "-": "descending"}
    order = [(name, directions[name[-1]]) for name in keys.column_names]
    # The place as the last key makes the order total, so that it does not matter who is stable.
    order.append(("place", "ascending"))
    rows = keys.append_column("place", from_integers(np.arange(keys.num_rows, dtype=np.int64)))
    try:
        if most is not None and most < keys.num_rows // 4:
            places = pc.select_k_unstable(rows, k=most, sort_keys=order)
        else:
            places = pc.sort_indices(rows, sort_keys=order)
    except pa.ArrowException as exc:
        raise PredicateError(f"rows cannot be ordered: {exc}") from exc
    return np.asarray(places.to_numpy(zero_copy_only=False)).astype(np.int64)[:most]


def fetch_rows(snapshot: Snapshot, projection: Projection, rows: Addresses) -> pa.Table:
    """Read rows in the order in which they are listed."""
    if not rows.num_rows:
        return pa.Table.from_batches([], projection.schema)
    if not projection.outputs:
        return bare_table(rows.num_rows)
    order = np.lexsort((rows.physical, rows.fragment))
    ends = np.flatnonzero(np.diff(rows.fragment[order], append=-1)) + 1
    tables = []
    for start, stop in pairwise([0, *ends.tolist()]):
        mine = order[start:stop]
        fragment = rows.fragments[int(rows.fragment[mine[0]])]
        deleted = rows.deleted[mine] if rows.deleted[mine].any() else None
        window = Selected(
            fragment, rows.physical[mine], rows.position[mine], decoded={}, deleted=deleted
        )
        tables.append(selected_table(snapshot, projection, window))
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return taken_rows(pa.concat_tables(tables), from_integers(places))


def slices(rows: Addresses, size: int) -> Iterator[Addresses]:
    """Cut a list of rows into pieces of at most ``size``."""
    for start in range(0, rows.num_rows, size):
        yield rows.take(np.arange(start, min(start + size, rows.num_rows), dtype=np.int64))
