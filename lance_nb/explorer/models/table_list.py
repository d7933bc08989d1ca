"""The tables of a database as lines of texts: size, versions, health.

Names and messages come from datasets and servers, so all texts are escaped and cut here.

Limits: a notebook shows the first ``TABLES_SHOWN`` tables, as each costs a manifest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_nb.explorer.models import text

# Most terminals list no tables.
if TYPE_CHECKING:
    from lance_nb.dataset.database import TableSummary

TABLES_SHOWN = 60
HEAD = ("table", "rows", "size", "versions", "columns", "last commit", "health")
NUMERIC = frozenset({1, 2, 3, 4})
_HEALTH_CHARS = 200


def table_line(found: TableSummary) -> tuple[str, ...]:
    """Describe a table by the columns of ``HEAD``; what is not known is empty."""
    return (
        text.name(found.name),
        _count(found.num_rows),
        "" if found.num_bytes is None else text.size(found.num_bytes),
        _count(found.num_versions),
        _count(found.num_columns),
        "" if found.committed is None else text.moment(found.committed),
        text.line(found.health, _HEALTH_CHARS),
    )


def _count(number: int | None) -> str:
    return "" if number is None else text.count(number)
