"""Record merged write-ahead logs in the system index that keeps their state.

Source: format/merged_logs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lance_nb.errors import InvalidInputError
from lance_nb.format.merged_logs import MergedLog, with_merged_logs
from lance_nb.transactions.index_rules import WAL_INDEX
from lance_nb.transactions.manifest_building import Draft


def record_merged_logs(draft: Draft, logs: Iterable[MergedLog]) -> None:
    """Record the logs. Raises InvalidInputError if the dataset keeps no state of logs."""
    for position, one in enumerate(draft.indices):
        if one.name == WAL_INDEX:
            details = with_merged_logs(one.details, logs)
            draft.indices[position] = replace(one, details=details, dataset_version=draft.version)
            return
    raise InvalidInputError(
        f"the dataset has no index {WAL_INDEX!r}: there is no state of write-ahead logs to change"
    )
