"""The tables of a database: what each card of the wall says.

Names, places and messages come from datasets and servers, so all texts are escaped and cut here.

Limits: at most ``TABLES_SHOWN`` tables are described at once; the others are listed by name.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lance_nb.code_lines import Python
from lance_nb.explorer.models import text

# Most terminals list no tables.
if TYPE_CHECKING:
    from lance_nb.dataset.database import Database, TableSummary

TABLES_SHOWN = 60
_HEALTH_CHARS = 200
_URI_CHARS = 300
HEAD = ("table", "rows", "size", "versions", "columns", "last commit", "health")
NUMERIC = frozenset({1, 2, 3, 4})


@dataclass(frozen=True, slots=True)
class TableCard:
    """One table as texts. ``state`` is "ok", "advice" or "damaged"."""

    name: str
    uri: str
    state: str
    health: str
    rows: str
    size: str
    versions: str
    columns: str
    committed: str
    committed_ms: int | None
    code: dict[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The cells of the table in the static picture."""
        return (
            self.name, self.rows, self.size, self.versions, self.columns, self.committed,
            self.health,
        )  # fmt: skip


def table_card(database: Database, found: TableSummary) -> TableCard:
    """Describe a table of a database for the page."""
    state = "damaged" if not found.can_open else "ok" if found.health == "ok" else "advice"
    opened = Python("lance_nb.database").call(database.uri).attribute("dataset").call(found.name)
    return TableCard(
        name=text.name(found.name),
        uri=text.line(found.uri, _URI_CHARS),
        state=state,
        health=text.line(found.health, _HEALTH_CHARS),
        rows=_count(found.num_rows),
        size="" if found.num_bytes is None else text.size(found.num_bytes),
        versions=_count(found.num_versions),
        columns=_count(found.num_columns),
        committed=text.moment(found.committed),
        committed_ms=text.milliseconds(found.committed),
        code={"python": opened.code, "magic": ""},
    )


def _count(number: int | None) -> str:
    return "" if number is None else text.count(number)


def card_json(card: TableCard) -> dict[str, object]:
    """Return a card as JSON-able values."""
    return asdict(card)
