"""The condition of an upsert on a matched pair: SQL over ``source.column`` and ``target.column``.

A column that only the target has may be named without its side; ``_rowid`` and ``_rowaddr`` are the
target's. The condition's columns are read for matched rows only.

Limits: memory holds one window of pairs.
Source: ``when_matched_update_all(condition)`` of pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import PredicateError
from lance_nb.table.filtered_scan import Selected, quoted, selected_table
from lance_nb.table.predicate import Columns, Filter, compile_filter
from lance_nb.table.projection import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, project
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.merge_insert_join import Matches
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
