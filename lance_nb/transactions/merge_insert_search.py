"""What an upsert changes: which target rows get new values or go, and which source rows are new.

The condition of an upsert on a matched pair: SQL over ``source.column`` and ``target.column``.

A column that only the target has may be named without its side; ``_rowid`` and ``_rowaddr`` are the
target's. The condition's columns are read for matched rows only.

Limits: memory holds the source's keys, two numbers per match, one per row that goes. Memory holds
one window of pairs.
Source: ``MergeInsertBuilder`` of pylance 14.0.2. ``when_matched_update_all(condition)`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import MergeInsertError, PredicateError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.filtered_scan import RowChoice, Selected, quoted, select_rows, selected_table
from lance_nb.table.predicate import Columns, Filter, compile_filter
from lance_nb.table.projection import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, project
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.merge_insert_clauses import MergeClauses, WhenMatched
from lance_nb.transactions.merge_insert_join import KeyWindow, Matches, join, read_keys
from lance_nb.transactions.merge_insert_keys import KeyNumbers
from lance_nb.transactions.merge_insert_source import SourceRows

SOURCE, TARGET = "source", "target"

_WINDOW_ROWS = 1 << 16
_ROW_FIELDS = [pa.field(ROW_ID, pa.uint64()), pa.field(ROW_ADDRESS, pa.uint64())]

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """A condition bound to both sides."""

    snapshot: Snapshot
    source: SourceRows
    filter: Filter

    @classmethod
    def of(cls, text: object, snapshot: Snapshot, source: SourceRows) -> MatchCondition:
        """Bind the text. Raises PredicateError."""
        if not isinstance(text, str):
            raise PredicateError(
                f"the condition of when_matched_update_all is SQL text, not {type(text).__name__}"
            )
        theirs = list(project(snapshot.manifest.schema, None).schema)
        ours = list(source.schema)
        given = {one.name for one in ours} | {SOURCE, TARGET}
        fields = [
            pa.field(SOURCE, pa.struct(ours)),
            pa.field(TARGET, pa.struct([*theirs, *_ROW_FIELDS])),
            *(one for one in theirs if one.name not in given),
        ]
        try:
            return cls(snapshot, source, compile_filter(text, pa.schema(fields)))
        except PredicateError as exc:
            both = ", ".join(repr(one.name) for one in ours[:12])
            raise PredicateError(
                f"{exc}. Say which side is meant where both have the column ({both}): "
                "source.column or target.column"
            ) from exc

    def kept(self, matches: Matches) -> Matches:
        """Return the pairs that pass. Raises PredicateError for a pair's values."""
        masks = [
            self._mask(matches, start, start + _WINDOW_ROWS)
            for start in range(0, matches.source.size, _WINDOW_ROWS)
        ]
        return matches.only(np.concatenate(masks)) if masks else matches

    def _mask(self, matches: Matches, start: int, stop: int) -> np.ndarray:
        physical, source = matches.physical[start:stop], matches.source[start:stop]
        columns: dict[Path, pa.ChunkedArray] = {}
        ours = [path for path in self.filter.paths if path[0] == SOURCE and len(path) > 1]
        rows = self.source.take(source, list(dict.fromkeys(path[1] for path in ours)))
        for path in ours:
            columns[path] = _inner(rows[path[1]], path[2:])
        theirs = [path for path in self.filter.paths if path not in columns]
        if theirs:
            columns |= self._target_columns(theirs, matches, physical)
        found: Columns = columns
        return self.filter.mask(found, int(source.size))

    def _target_columns(
        self, paths: list[Path], matches: Matches, physical: np.ndarray
    ) -> dict[Path, pa.ChunkedArray]:
        names = {path: path[1:] if path[0] == TARGET else path for path in paths}
        wanted = list(dict.fromkeys(quoted(one) for one in names.values()))
        stored = [one for one in wanted if one not in ROW_COLUMNS]
        projection = project(
            self.snapshot.manifest.schema, stored, [one for one in wanted if one in ROW_COLUMNS]
        )
        distinct, place = np.unique(physical, return_inverse=True)
        rows = Selected(matches.fragment, distinct, distinct, {})
        table = selected_table(self.snapshot, projection, rows)
        if distinct.size != physical.size:
            table = taken_rows(table, from_integers(place))
        order = [*stored, *(one for one in wanted if one in ROW_COLUMNS)]
        return {path: table.column(order.index(quoted(one))) for path, one in names.items()}


def _inner(column: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    """Return a nested field, null where a struct around it is."""
    for name in path:
        place = column.type.get_field_index(name)
        chunks = [chunk.flatten()[place] for chunk in column.chunks]
        column = pa.chunked_array(chunks, column.type.field(place).type)
    return column


NOTHING: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Found:
    """What the join says: matches that change rows, rows that go, source rows that are new."""

    changes: tuple[Matches, ...]
    gone: tuple[tuple[Fragment, Ints], ...]
    new: Ints

    @property
    def num_updated_rows(self) -> int:
        """Target rows that get new values."""
        return sum(one.source.size for one in self.changes)


def find_rows(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    seen: Callable[[int], None] | None = None,
    windows: Iterable[KeyWindow] | None = None,
) -> Found:
    """Join, and sort the matches by what becomes of them; ``seen`` counts target rows.

    ``windows`` are a part of the target, None is all of it.

    Raises MergeInsertError, PredicateError, NotSupportedError, StorageError.
    """
    condition = None
    if clauses.condition is not None:
        condition = MatchCondition.of(clauses.condition, snapshot, source)
    names = list(clauses.on)
    keys = KeyNumbers(typed(source.columns(names), snapshot.manifest.schema))
    is_matched = np.zeros(source.num_rows, np.bool_)
    changes: list[Matches] = []
    going: list[tuple[Fragment, Ints]] = []
    for every in join(read_keys(snapshot, names) if windows is None else windows, keys, seen):
        is_matched[every.source] = True
        gone = _lonely(snapshot, clauses, every)
        if clauses.matched is WhenMatched.FAIL and every.source.size:
            raise MergeInsertError(
                f"Merge insert failed: found matching row with key values: "
                f"{_key_text(source, names, every.source[0])}"
            )
        matches = every if condition is None else condition.kept(every)
        if clauses.matched in (WhenMatched.UPDATE, WhenMatched.DELETE):
            _check_unambiguous(source, names, matches)
        if clauses.matched is WhenMatched.UPDATE and matches.source.size:
            changes.append(replace(matches, lonely=NOTHING))
        elif clauses.matched is WhenMatched.DELETE:
            gone = np.union1d(gone, matches.physical)
        if gone.size:
            going.append((matches.fragment, gone))
    new = np.flatnonzero(~is_matched) if clauses.inserts else NOTHING
    return Found(tuple(changes), tuple(going), new)


def typed(keys: pa.Table, schema: Schema) -> pa.Table:
    """Return keys of the source in the types of the dataset."""
    arrow = schema.to_arrow()
    wanted = pa.schema([pa.field(name, arrow.field(name).type) for name in keys.column_names])
    return keys.replace_schema_metadata(None).cast(wanted)


def _lonely(snapshot: Snapshot, clauses: MergeClauses, matches: Matches) -> Ints:
    """Return the offsets of rows without a partner that shall be deleted."""
    if not clauses.deletes_lonely or not matches.lonely.size:
        return NOTHING
    if clauses.lonely_filter is None:
        return matches.lonely
    choice = RowChoice(clauses.lonely_filter, (matches.fragment,))
    nothing = project(snapshot.manifest.schema, [])
    passing = [one.physical for one in select_rows(snapshot, choice, nothing)]
    return np.intersect1d(matches.lonely, np.concatenate([NOTHING, *passing]), assume_unique=True)


def _check_unambiguous(source: SourceRows, names: Sequence[str], matches: Matches) -> None:
    again = np.flatnonzero(np.diff(matches.physical) == 0)
    if again.size:
        raise MergeInsertError(
            "Ambiguous merge inserts are prohibited: multiple source rows match the same target "
            f"row on ({_key_text(source, names, matches.source[again[0]])}). Leave one source row "
            "per key"
        )


def _key_text(source: SourceRows, names: Sequence[str], row: int) -> str:
    values = source.take(np.array([row], np.int64), names).to_pylist()[0]
    return ", ".join(f"{name} = {value!r:.80}" for name, value in values.items())
