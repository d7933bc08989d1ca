"""Choose filters for a column by its type and values, and say with pyarrow which rows pass.

A ``Check`` holds the filter as SQL or as an Arrow expression and the mask that pyarrow computes on
the column in memory, an implementation that shares nothing with the predicate compiler but Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_nb.dataset.scanner import LanceScanner
from lance_nb.session.opened import OpenedVersion
from lance_nb.session.session import Session
from lance_nb.table.scan_plan import ScanOptions
from lance_nb.table.snapshot import Snapshot
from tests.support.reading import decoded, first_difference, same

Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class Check:
    """A filter and the rows that pass it."""

    condition: Any
    mask: pa.Array


def checks(name: str, array: pa.Array, rng: Random) -> Iterator[Check]:
    """Yield the filters to try on a column."""
    quoted = f"`{name}`"
    yield Check(f"{quoted} IS NULL", array.is_null())
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        yield from _in_structs(quoted, array, rng)
    elif pa.types.is_nested(kind):
        yield from _on_lists(quoted, array, rng)
    else:
        yield from _on_values(quoted, name, array, rng)


def _in_structs(quoted: str, array: pa.StructArray, rng: Random) -> Iterator[Check]:
    if not array.type.num_fields:
        return
    number = int(rng.integers(array.type.num_fields))
    # flatten() merges the struct's nulls into its children.
    field, child = array.type.field(number), array.flatten()[number]
    path = f"{quoted}.`{field.name}`"
    yield Check(f"{path} IS NOT NULL", child.is_valid())
    if pa.types.is_integer(field.type) or pa.types.is_string(field.type):
        yield from _on_values(path, None, child, rng)


def _on_lists(quoted: str, array: pa.Array, rng: Random) -> Iterator[Check]:
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        least = int(rng.integers(0, 4))
        mask = pc.fill_null(pc.greater(pc.list_value_length(array), least), False)
        yield Check(f"array_length({quoted}) > {least}", mask)
    else:
        yield Check(f"{quoted} IS NOT NULL", array.is_valid())


def _on_values(quoted: str, name: str | None, array: pa.Array, rng: Random) -> Iterator[Check]:
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    values = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    known = values.drop_null()
    if pa.types.is_boolean(kind):
        yield Check(f"NOT {quoted}", _passing(pc.invert(values)))
        return
    if not len(known) or pa.types.is_float16(kind):
        return
    one, other = (known[int(rng.integers(len(known)))] for _ in range(2))
    if pa.types.is_integer(kind):
        low, high = (pa.scalar(k, kind) for k in sorted((one.as_py(), other.as_py())))
        inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        yield Check(f"{quoted} BETWEEN {low} AND {high}", _passing(inside))
        among = pc.is_in(values, pa.array([low.as_py(), high.as_py()], kind))
        yield Check(f"{quoted} NOT IN ({low}, {high})", _passing(pc.invert(among), values))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = one.as_py()
        literal = "'" + text.replace("'", "''") + "'"
        if "\n" not in text:
            yield Check(f"{quoted} >= {literal}", _passing(pc.greater_equal(values, one)))
        start = text[:3].translate({ord(c): None for c in "%_'"})
        found = pc.starts_with(values, start)
        yield Check(f"{quoted} LIKE '{start}%'", _passing(found))
    elif name is not None and not pa.types.is_dictionary(array.type):
        if pa.types.is_floating(kind) and (not np.isfinite(one.as_py()) or one.as_py() == 0):
            one = pa.scalar(1.5, kind)  # SQL has an order of its own for the others
        if _has_negative_nan(known):  # for pylance it is the least number
            yield Check(pc.field(name) == one, _passing(pc.equal(values, one)))
        else:
            yield Check(pc.field(name) < one, _passing(pc.less(values, one)))


def _has_negative_nan(known: pa.Array) -> bool:
    if not pa.types.is_floating(known.type):
        return False
    numbers = known.to_numpy()
    return bool((np.isnan(numbers) & np.signbit(numbers)).any())


def _passing(mask: pa.Array, values: pa.Array | None = None) -> pa.Array:
    """A null is no pass."""
    mask = pc.fill_null(mask, False)
    return mask if values is None else pc.and_(mask, values.is_valid())


def filtered_differences(
    snapshot: Snapshot, table: pa.Table, rng: Random, *, share: int = 1
) -> Iterator[str]:
    """Filter by one column in ``share``, one way each; read it and a column beside it."""
    names = table.column_names
    version = OpenedVersion(Session(snapshot.locations.root), snapshot)
    for number in range(table.num_rows % share, len(names), share):
        name = names[number]
        if b"lance-encoding:blob" in (table.schema.field(name).metadata or {}):
            continue  # a filter sees descriptions, and those of 2.0 are never null, as in pylance
        ways = list(checks(name, table[name].combine_chunks(), rng))
        check = ways[(number + table.num_rows) % len(ways)]
        wanted = [name, names[number - 1]][: len(names)]
        found = LanceScanner(version, ScanOptions(wanted, check.condition)).to_table()
        expected = table.select(wanted).filter(check.mask)
        for got, right in zip(found.columns, expected.columns, strict=True):
            pair = decoded(got), decoded(right)
            if not same(*pair):
                yield f"{name} where {check.condition}: {first_difference(*pair)}"
