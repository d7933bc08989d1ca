"""Summarize what differs between two versions: counts per level, and drift per column.

Layout of ``ChangeCounts.to_json``: ``a``, ``b`` (labels), ``same`` (they are one version),
``empty`` (nothing differs), ``fork`` (the last common version, if both have versions since then:
``label``, ``branch``, ``version``, ``a_side``, ``b_side``), ``identity`` (``label``, ``reason``,
``kind``: id, key or address), ``rows`` (before, after), ``bytes`` (added, removed),
``num_columns``, ``code``, and ``chips``: per level ``id``, ``label``, ``added``, ``removed``,
``changed``, ``bound`` (whether the counts are upper bounds) and ``note``. Counts come from the
manifests alone: see table/diff/counts for what the counts of rows mean.

Layout of a column of ``change_drift``: ``name``, ``type``, ``kind`` (number, time, vector, text,
other), ``psi`` (the population stability index, or null), ``before`` and ``after``: ``rows``,
``sampled``, ``nulls`` (share), ``bars`` (share of the rows read, per bin or label, in thousandths
of the largest) and ``facts`` (label and value); ``labels`` of the bars of a text column.

``DiffCache`` keeps the diffs of a session, so that no comparison is repeated.

Limits: ``MAX_DIFFS`` diffs are kept; a key has at most ``MAX_KEY`` columns. Drift: ``MAX_COLUMNS``
columns per call, and a sample of ``SAMPLE_ROWS`` rows on each side unless all rows are requested.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, can_be_listed, magic, offered
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import cells, text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.source import Source, compared_source
from lance_nb.table.diff import Diff
from lance_nb.table.diff.compare_plan import BY_ADDRESS, BY_ROW_ID
from lance_nb.table.diff.drift import ColumnDrift, ColumnProfile
from lance_nb.value_classes import dataclass

MAX_DIFFS = 4
MAX_KEY = 16
MAX_NAME_CHARS = 1000

Place = tuple[str | None, int]
Key = tuple[str, ...] | None
MAX_COLUMNS = 24
SAMPLE_ROWS = 10_000
_LABEL_CHARS = 60

Progress = Callable[[int, int], object]


class Opener(Protocol):
    """What opens versions: the session."""

    def open(self, place: Place) -> Source: ...


class DiffCache:
    """The diffs that were looked at lately."""

    def __init__(self, session: Opener) -> None:
        self._session = session
        self._diffs: OrderedDict[tuple[Place, Place, Key], Diff] = OrderedDict()

    def diff(self, a: Place, b: Place, key: Key = None) -> Diff:
        """Compare two versions, or return what was found before.

        Raises VersionNotFoundError, InvalidInputError and ColumnNotFoundError for a bad key.
        """
        diff_key = a, b, key
        diff = self._diffs.get(diff_key)
        if diff is None:
            diff = self._diffs[diff_key] = self.passing(a, b, key)
            while len(self._diffs) > MAX_DIFFS:
                self._diffs.popitem(last=False)
        self._diffs.move_to_end(diff_key)
        return diff

    def passing(self, a: Place, b: Place, key: Key = None) -> Diff:
        """Compare as ``diff`` does, but do not remember it: others were looked at longer."""
        diff = self._diffs.get((a, b, key))
        if diff is not None:
            return diff
        return compared_source(self._session.open(b)).diff(self._session.open(a), key=key)


def key_of(args: Mapping[str, Any]) -> Key:
    """Take the columns that tell rows apart from the arguments of a request, None if none given."""
    names = args.get("key")
    if names is None:
        return None
    fits = isinstance(names, list) and 0 < len(names) <= MAX_KEY
    if not fits or not all(isinstance(name, str) and len(name) <= MAX_NAME_CHARS for name in names):
        raise InvalidInputError(f"key must be a list of up to {MAX_KEY} names of columns")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Chip:
    """The numbers of one level."""

    id: str
    label: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    bound: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """The numbers of a diff, and how its rows are told apart."""

    diff: Diff
    uri: str
    chips: tuple[Chip, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON-able values."""
        diff, counts = self.diff, self.diff.counts
        return {
            "a": text.ref_label(*diff.a),
            "b": text.ref_label(*diff.b),
            "same": diff.a == diff.b,
            "empty": counts.is_empty,
            "fork": _fork(diff),
            "identity": {
                "label": text.line(diff.identity, 200),
                "reason": text.line(diff.reason),
                "kind": {BY_ROW_ID: "id", BY_ADDRESS: "address"}.get(diff.identity, "key"),
            },
            "rows": [counts.rows_before, counts.rows_after],
            "bytes": [counts.bytes_added, counts.bytes_removed],
            "num_columns": len(diff.column_pairs),
            "code": diff_code(diff, self.uri),
            "chips": [asdict(chip) for chip in self.chips],
        }


def change_counts(diff: Diff, uri: str) -> ChangeCounts:
    """Count what differs, from the manifests; ``uri`` is what opens the dataset."""
    counts = diff.counts
    chips = (
        Chip(
            id="rows",
            label="Rows",
            added=counts.rows_in,
            removed=counts.rows_out,
            changed=0,
            bound=not counts.rows_exact,
            note=""
            if counts.rows_exact or counts.rows_in or counts.rows_out
            else "values may differ",
        ),
        Chip("drift", "Drift"),
        Chip(
            "schema",
            "Schema",
            counts.fields_added,
            removed=counts.fields_removed,
            changed=counts.fields_changed,
        ),
        Chip("transactions", "Transactions", note=str(counts.transactions)),
        Chip(
            "fragments",
            "Fragments",
            counts.fragments_added,
            removed=counts.fragments_removed,
            changed=counts.fragments_changed,
        ),
        Chip("deletions", "Deletions", counts.rows_undeleted, counts.rows_deleted),
        Chip(
            "indices",
            "Indices",
            counts.indices_added,
            removed=counts.indices_removed,
            changed=counts.indices_changed,
        ),
        Chip(
            "config",
            "Settings",
            counts.config_added,
            removed=counts.config_removed,
            changed=counts.config_changed,
        ),
    )
    return ChangeCounts(diff, uri, chips)


def _fork(diff: Diff) -> dict[str, Any] | None:
    """Return where two lines of versions parted, None when one lies in the past of the other."""
    sides = dict.fromkeys(("a", "b"), 0)
    for stretch in diff.ends.between:
        sides[stretch.side] += stretch.num_versions
    past = diff.ancestor
    if not sides["a"] or (past is not None and past.branch == diff.a[0] == diff.b[0]):
        return None
    fork = {"a_side": sides["a"], "b_side": sides["b"]}
    if past is None:
        return fork | {"label": "", "branch": None, "version": None}
    label = text.ref_label(past.branch, past.version)
    return fork | {"label": label, "branch": past.branch, "version": past.version}


def diff_code(diff: Diff, uri: str) -> dict[str, str]:
    """Return the expressions that make the same diff, in Python and as a magic."""
    key = diff.matched_by
    arguments: dict[str, object] = {}
    if key.reason.startswith("the key that was given"):
        arguments["key"] = list(key.key)
    elif key.reason.startswith("asked for"):
        arguments["key"] = "_rowid" if key.is_row_id else "_rowaddr"
    ends = (place[1] if place[0] is None else place for place in (diff.a, diff.b))
    python = Python("lance_nb.diff").call(uri, *ends, **arguments)
    columns = list(key.key) if key.key and arguments else None
    places = "..".join(refs.place_word(*place) for place in (diff.a, diff.b))
    if columns is not None and not can_be_listed(columns):
        return offered(python, PYTHON_ONLY)
    named = None if columns is None else ",".join(columns)
    return offered(python, magic("diff", places, options={"--key": named}))


def change_drift(
    diff: Diff, first: int, count: int, *, exact: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Profile some of the columns that both versions have, ``num_columns`` of them in all."""
    shared = [pair for pair in diff.column_pairs if pair.a is not None and pair.b is not None]
    chosen = shared[first : first + min(count, MAX_COLUMNS)]
    names = [pair.name for pair in chosen]
    drifts = diff.drift(names, sample=SAMPLE_ROWS, exact=exact, progress=progress)
    types = {pair.name: pair.arrow.type for pair in chosen}
    return {
        "num_columns": len(shared),
        "columns": [_column(drift, types[drift.name]) for drift in drifts],
    }


def _column(drift: ColumnDrift, kind: pa.DataType) -> dict[str, Any]:
    sides = (drift.before, drift.after)
    most = max((_share(count, side) for side in sides for count in side.histogram), default=0.0)
    return {
        "name": text.name(drift.name),
        "type": type_label(kind),
        "kind": drift.kind,
        "psi": None if drift.psi is None else round(drift.psi, 4),
        "labels": [text.line(label, _LABEL_CHARS) for label in drift.labels],
        "before": _side(drift.before, drift.kind, kind, most),
        "after": _side(drift.after, drift.kind, kind, most),
    }


def _share(count: int, side: ColumnProfile) -> float:
    return count / side.num_sampled if side.num_sampled else 0.0


def _side(side: ColumnProfile, value_kind: str, kind: pa.DataType, most: float) -> dict[str, Any]:
    def shown(value: float | None) -> str:
        return "–" if value is None else _value(value, value_kind, kind)

    facts = [["null", text.share(side.null_count, side.num_sampled)]]
    if value_kind not in ("vector", "other"):
        distinct = "many" if side.distinct is None else text.count(side.distinct)
        facts.append(["distinct", distinct])
    if value_kind in ("number", "time", "vector"):
        norm = "norm, " if value_kind == "vector" else ""
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


def _value(value: float, value_kind: str, kind: pa.DataType) -> str:
    """Say a number; a time in its own form."""
    if value_kind == "time":
        try:
            stored = pa.scalar(int(value), pa.int32() if kind.bit_width == 32 else pa.int64())
            return cells.scalar_text(stored.cast(kind), _LABEL_CHARS)
        except (pa.ArrowException, ValueError, OverflowError):
            return f"{value:.6g}"
    if float(value).is_integer() and abs(value) < 1e15:
        return text.count(int(value))
    return text.count(round(value)) if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
