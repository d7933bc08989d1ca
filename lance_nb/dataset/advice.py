"""Advice on the health of a dataset: fragments to compact, indices to extend, rows to merge.

The doctor prints it, and the health of a table in a database lists it. All of it comes from the
manifest, and for datasets with a write-ahead log also from the files of the log.
"""

from __future__ import annotations

from typing import NamedTuple

from lance_nb.dataset.stats import DatasetStats
from lance_nb.errors import NotSupportedError
from lance_nb.format.transaction_summary import count_of
from lance_nb.indices.registry import builder_of
from lance_nb.table.indices import IndexDescription, describe_indices, segments_of
from lance_nb.table.pending_logs import PendingRows, pending_rows
from lance_nb.table.snapshot import Snapshot

STALE_SHARE, STALE_ROWS = 0.1, 1000
"""An index is stale if so many rows, and such a share of all, are in no segment of it."""


class Advice(NamedTuple):
    """A reason and what to do: ``verb`` of %lance, or where none does it, ``remedy`` in words."""

    reason: str
    verb: str = ""
    remedy: str = ""


def advice_on(snapshot: Snapshot, stats: DatasetStats) -> list[Advice]:
    """Return the advice on a version. Raises LanceError for what cannot be read."""
    advice = [Advice(reason, "compact") for reason in stats.advice()]
    for index in describe_indices(snapshot):
        stale = stale_index(snapshot, index)
        if stale is not None:
            advice.append(stale)
    pending = pending_rows(snapshot)
    if pending is not None and (pending.num_rows or not pending.is_exact):
        advice.append(Advice(pending_reason(pending), remedy=PENDING_REMEDY))
    return advice


def stale_index(snapshot: Snapshot, index: IndexDescription) -> Advice | None:
    """Return what to do about an index that covers too few rows, None if there is nothing."""
    missing = index.num_unindexed_rows
    total = missing + index.num_rows_indexed
    if index.name.startswith("__") or missing < STALE_ROWS or missing < STALE_SHARE * total:
        return None
    reason = f"index {index.name!r} does not cover {missing:,} of {total:,} rows: they are scanned"
    try:
        builder_of(segments_of(snapshot, index.name)[-1])
    except NotSupportedError:
        remedy = "optimize_indices of pylance extends an index of this kind"
        return Advice(reason, remedy=remedy)
    return Advice(reason, "index optimize")


PENDING_REMEDY = (
    "merge them with pylance (merge_insert with mark_sstables_as_compacted); rows that are only in "
    "the log become such a dataset when a writer of the shard is opened and closed"
)


def pending_reason(pending: PendingRows) -> str:
    """Say how many rows no scan returns, and where they are."""
    verb, pronoun = ("is", "it") if pending.num_rows == 1 else ("are", "them")
    rows = count_of(pending.num_rows, "row")
    if not pending.is_exact:
        rows = f"at least {rows}" if pending.num_rows else "rows"
    subject = f"{rows} of the write-ahead log {verb} not merged, and no scan returns {pronoun}"
    places = []
    if pending.tables:
        count = len(pending.tables)
        more_text = f" and {count - 1:,} more" if count > 1 else ""
        num_in_tables = pending.num_rows - pending.num_in_log
        number_text = f"{num_in_tables:,}" if num_in_tables else "an unknown number"
        places.append(f"{number_text} in {pending.tables[0]}{more_text}")
    if pending.num_in_log:
        places.append(f"{pending.num_in_log:,} in the log only")
    return f"{subject} ({', '.join(places)})"
