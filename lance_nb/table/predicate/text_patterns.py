"""Functions of whole columns of text and of a pattern: search, replace, split, map.

What Arrow does with a literal pattern only is done once per different pattern; where nearly every
row brings a pattern of its own, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.kernels.ranges import starts_of
from lance_nb.table.predicate.expression import per_row
from lance_nb.table.predicate.text_kernels import numbers_of
from lance_nb.table.predicate.text_points import Ints, Points, points_of, text_of

_ROWS_PER_PATTERN = 16  # fewer than so many, and a row at a time is faster


def by_pattern(
    with_literals: Callable[..., pa.Array], row: Callable[..., Any], type_: pa.DataType, count: int
) -> Callable[..., pa.Array]:
    """Make a function of a text, ``count`` patterns and more of one that takes patterns as str.

    ``row`` is the same for one row.
    """

    def function(texts: pa.Array, *others: pa.Array) -> pa.Array:
        coded = [one.dictionary_encode() for one in others[:count]]
        key: Ints = np.zeros(len(texts), np.int64)
        for one in coded:
            key *= max(len(one.dictionary), 1)
            key += one.indices.to_numpy(zero_copy_only=False)
        different = np.unique(key)
        columns = (texts, *others[count:])
        if different.size > 1 and different.size * _ROWS_PER_PATTERN > key.size:
            return pa.chunked_array([per_row(row, type_)(texts, *others)]).combine_chunks()
        if different.size <= 1:
            patterns = [one[0].as_py() if len(one) else "" for one in others[:count]]
            return with_literals(columns[0], *patterns, *columns[1:])
        order = np.argsort(key, kind="stable")
        parts = []
        for places in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
            patterns = [one[int(places[0])].as_py() for one in others[:count]]
            mine = [one.take(pa.array(places)) for one in columns]
            parts.append(with_literals(mine[0], *patterns, *mine[1:]).cast(type_))
        return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))

    return function


def _strpos(texts: pa.Array, piece: str) -> pa.Array:
    import pyarrow.compute as pc

    if not piece:
        return pa.array(np.ones(len(texts), np.int32))
    parts = pc.split_pattern(texts, pattern=piece, max_splits=1)
    ends = pc.list_value_length(parts).to_numpy(zero_copy_only=False)
    before = pc.utf8_length(pc.list_element(parts, 0)).to_numpy(zero_copy_only=False)
    return pa.array(np.where(ends > 1, before + 1, 0).astype(np.int32))


def _contains(texts: pa.Array, piece: str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.match_substring(texts, pattern=piece)


def _replace(texts: pa.Array, old: str, new: str) -> pa.Array:
    import pyarrow.compute as pc

    if old:
        return pc.replace_substring(texts, pattern=old, replacement=new)
    # Nothing is found before and behind every character.
    return pc.replace_substring_regex(texts, pattern="", replacement=new.replace("\\", r"\\"))


def _split_part(texts: pa.Array, delimiter: str, numbers: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    number = numbers_of(numbers)
    if bool((number == 0).any()):
        raise pa.ArrowInvalid("split_part counts from 1")
    if delimiter:
        parts = pc.split_pattern(texts, pattern=delimiter)
        ends = parts.offsets.to_numpy().astype(np.int64)
        values = parts.values
    else:
        ends, values = np.arange(len(texts) + 1, dtype=np.int64), texts
    place = np.where(number > 0, number - 1, np.diff(ends) + number)
    inside = (place >= 0) & (place < np.diff(ends))
    wanted = pa.array(ends[:-1] + place, mask=~inside)
    return values.take(wanted).fill_null("")


def _split_one(value: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise pa.ArrowInvalid("split_part counts from 1")
    parts = value.split(delimiter) if delimiter else [value]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _translate(texts: pa.Array, source: str, target: str) -> pa.Array:
    table = _translation(source, target)
    if not table:
        return texts
    points = points_of(texts)
    keys = np.array(sorted(table), np.uint32)
    become = np.array([ord(table[key] or "\0") for key in sorted(table)], np.uint32)
    is_kept = np.array([table[key] is not None for key in sorted(table)])
    place = np.minimum(np.searchsorted(keys, points.codes), keys.size - 1)
    hit = keys[place] == points.codes
    kept = ~hit | is_kept[place]
    codes = np.where(hit, become[place], points.codes)[kept]
    return text_of(Points(codes, starts_of(kept.astype(np.int64))[points.offsets]))


def _translation(source: str, target: str) -> dict[int, str | None]:
    return {ord(a): (target[i] if i < len(target) else None) for i, a in enumerate(source)}


strpos = by_pattern(_strpos, lambda value, piece: value.find(piece) + 1, pa.int32(), 1)
contains = by_pattern(_contains, lambda value, piece: piece in value, pa.bool_(), 1)
replace = by_pattern(_replace, lambda value, old, new: value.replace(old, new), pa.string(), 2)
split_part = by_pattern(_split_part, _split_one, pa.string(), 1)
translate = by_pattern(
    _translate, lambda value, *pair: value.translate(_translation(*pair)), pa.string(), 2
)
