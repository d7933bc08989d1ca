"""What a filter costs: the columns it decodes, and the rows that statistics let it pass over.

Data files of 2.x have no statistics of pages, so that a filter decodes its columns for every row;
those of 0.1 have them, and whole pages are passed over. The other columns are decoded only for the
rows that are left, either way.

Layout of ``to_json``: ``columns`` (names), ``rows`` whose filter columns are decoded, ``skipped``
rows of pages that are passed over (null: no file has statistics), ``fragments``.

Limits: ``MAX_FRAGMENTS`` fragments are looked at; with more, nothing is said of skipped rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lance_nb.explorer.models import text
from lance_nb.explorer.models.source import StoredSource
from lance_nb.table.page_pruning import rows_that_may_pass
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot

MAX_FRAGMENTS = 256
MAX_NAMES = 12


@dataclass(frozen=True, slots=True)
class FilterReads:
    """What the filter of a scan reads."""

    columns: tuple[str, ...]
    rows: int
    skipped: int | None
    fragments: int

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return asdict(self) | {"columns": list(self.columns)}


def filter_reads(dataset: StoredSource, filter: str) -> FilterReads:
    """Tell what a filter reads, from metadata. Raises PredicateError."""
    snapshot = dataset.opened[1]
    condition = compile_filter(filter, project(snapshot.manifest.schema, None).schema)
    names = dict.fromkeys(text.name(".".join(path)) for path in condition.paths)
    skipped = _skipped(snapshot, condition)
    stats = dataset.stats()
    rows = stats.num_rows - (skipped or 0)
    return FilterReads(tuple(names)[:MAX_NAMES], rows, skipped, stats.num_fragments)


def _skipped(snapshot: Snapshot, condition: Filter) -> int | None:
    fragments = snapshot.manifest.fragments
    if len(fragments) > MAX_FRAGMENTS:
        return None
    found = [rows_that_may_pass(snapshot, fragment, condition) for fragment in fragments]
    known = [mask for mask in found if mask is not None]
    return sum(int(mask.size - mask.sum()) for mask in known) if known else None
