"""How columns drifted between two versions, for small pictures side by side.

Layout of a column: ``name``, ``type``, ``kind`` (number, time, vector, text, other), ``psi`` (the
population stability index, or null), ``before`` and ``after``: ``rows``, ``sampled``, ``nulls``
(share), ``bars`` (share of the rows looked at, per bin or label, in thousandths of the largest) and
``facts`` (label and value); ``labels`` of the bars of a text column.

Limits: ``MAX_COLUMNS`` columns per call; a sample of ``SAMPLE_ROWS`` rows on each side, unless all
rows are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import cells, text
from lance_nb.explorer.models.schema_tree import type_label
from lance_nb.table.diff import Diff
from lance_nb.table.diff.column_profile import ColumnProfile
from lance_nb.table.diff.drift import ColumnDrift

MAX_COLUMNS = 24
SAMPLE_ROWS = 10_000
_LABEL_CHARS = 60

Progress = Callable[[int, int], object]


def change_drift(
    diff: Diff, first: int, count: int, *, exact: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Profile some of the columns that both versions have, ``num_columns`` of them in all."""
    shared = [one for one in diff.column_pairs if one.a is not None and one.b is not None]
    chosen = shared[first : first + min(count, MAX_COLUMNS)]
    names = [one.name for one in chosen]
    found = diff.drift(names, sample=SAMPLE_ROWS, exact=exact, progress=progress)
    types = {one.name: one.arrow.type for one in chosen}
    return {
        "num_columns": len(shared),
        "columns": [_column(one, types[one.name]) for one in found],
    }


def _column(one: ColumnDrift, kind: pa.DataType) -> dict[str, Any]:
    sides = (one.before, one.after)
    most = max((_share(count, side) for side in sides for count in side.histogram), default=0.0)
    return {
        "name": text.name(one.name),
        "type": type_label(kind),
        "kind": one.kind,
        "psi": None if one.psi is None else round(one.psi, 4),
        "labels": [text.line(label, _LABEL_CHARS) for label in one.labels],
        "before": _side(one.before, one.kind, kind, most),
        "after": _side(one.after, one.kind, kind, most),
    }


def _share(count: int, side: ColumnProfile) -> float:
    return count / side.num_sampled if side.num_sampled else 0.0


def _side(side: ColumnProfile, what: str, kind: pa.DataType, most: float) -> dict[str, Any]:
    def shown(value: float | None) -> str:
        return "–" if value is None else _value(value, what, kind)

    facts = [["null", text.share(side.null_count, side.num_sampled)]]
    if what not in ("vector", "other"):
        distinct = "many" if side.distinct is None else text.count(side.distinct)
        facts.append(["distinct", distinct])
    if what in ("number", "time", "vector"):
        norm = "norm, " if what == "vector" else ""
        facts += [
            [f"{norm}min", shown(side.minimum)],
            [f"{norm}mean", shown(side.mean)],
            [f"{norm}max", shown(side.maximum)],
        ]
    scale = 1000 / most if most else 0.0
    return {
        "rows": side.num_rows,
        "sampled": side.num_sampled,
        "nulls": side.null_share,
        "bars": [round(_share(count, side) * scale) for count in side.histogram],
        "facts": facts,
    }


def _value(value: float, what: str, kind: pa.DataType) -> str:
    """Say a number; a time in its own form."""
    if what == "time":
        try:
            stored = pa.scalar(int(value), pa.int32() if kind.bit_width == 32 else pa.int64())
            return cells.scalar_text(stored.cast(kind), _LABEL_CHARS)
        except (pa.ArrowException, ValueError, OverflowError):
            return f"{value:.6g}"
    if float(value).is_integer() and abs(value) < 1e15:
        return text.count(int(value))
    return text.count(round(value)) if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
