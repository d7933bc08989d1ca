"""What an upsert changes: which target rows get new values or go, and which source rows are new.

Limits: memory holds the source's keys, two numbers per match, one per row that goes.
Source: ``MergeInsertBuilder`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.errors import MergeInsertError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.filtered_scan import RowChoice, select_rows
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.merge_insert_clauses import MergeClauses, WhenMatched
from lance_nb.transactions.merge_insert_condition import MatchCondition
from lance_nb.transactions.merge_insert_join import KeyWindow, Matches, join, read_keys
from lance_nb.transactions.merge_insert_keys import KeyNumbers
from lance_nb.transactions.merge_insert_source import SourceRows

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
