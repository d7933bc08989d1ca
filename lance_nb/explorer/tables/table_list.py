"""The tables of a database: as lines of texts, and as the cards of the explorer.

Names and messages come from datasets and servers, so all texts are escaped and cut here.

Layout of ``TableCard.to_json``: ``label``; ``state`` (ok, advice, error); ``health``; ``rows``,
``columns``, ``bytes``, ``versions``, ``version``, ``time``, ``time_ms``, null where not known;
``bars``, the newest versions, oldest first: ``[version, operation, changed rows]``, with ``""`` and
null for versions of which only the name was read; ``code``, the lines that open the table;
``error``, an error card or null.

What is read for a card: the list of versions and the newest manifest. Of a table on this machine
with at most ``MAX_FRAGMENTS`` fragments also the manifests of the ``MAX_BARS`` newest versions.
Data files are not opened, which the cards say (``LOOKED_AT``).

Limits: text and static HTML show the first ``TABLES_SHOWN`` tables, as each costs a manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lance_nb.code_lines import Python, magic, offered
from lance_nb.errors import LanceError
from lance_nb.explorer import text
from lance_nb.explorer.error_card import ErrorCard, error_card
from lance_nb.explorer.history.versions import version_bars
from lance_nb.explorer.source import is_on_this_machine
from lance_nb.value_classes import dataclass

# Most terminals list no tables.
if TYPE_CHECKING:
    from lance_nb.dataset.database import TableListing, TableSummary

TABLES_SHOWN = 60
MAX_BARS = 24
MAX_FRAGMENTS = 10_000
HEAD = ("table", "rows", "size", "versions", "columns", "last commit", "health")
NUMERIC = frozenset({1, 2, 3, 4})
LOOKED_AT = (
    "Health comes from the newest manifest of each table: fragments, deleted rows, recorded sizes. "
    "Data files were not opened; ds.verify() checks them."
)
_HEALTH_CHARS = 200

Bar = tuple[int, str, int | None]


def table_line(summary: TableSummary) -> tuple[str, ...]:
    """Describe a table by the columns of ``HEAD``; what is not known is empty."""
    return (
        text.name(summary.name),
        _count(summary.num_rows),
        "" if summary.num_bytes is None else text.size(summary.num_bytes),
        _count(summary.num_versions),
        _count(summary.num_columns),
        "" if summary.committed is None else text.moment(summary.committed),
        text.line(summary.health, _HEALTH_CHARS),
    )


def _count(number: int | None) -> str:
    return "" if number is None else text.count(number)


@dataclass(frozen=True, slots=True)
class TableCard:
    """A table as a card of the explorer: what its newest manifest says, or why it has none."""

    summary: TableSummary
    bars: tuple[Bar, ...] = ()
    error: ErrorCard | None = None

    @property
    def label(self) -> str:
        """The name, fit to show."""
        return text.name(self.summary.name)

    @property
    def state(self) -> str:
        """Whether the table is "ok", has "advice", or is in "error"."""
        if not self.summary.can_open:
            return "error"
        return "ok" if self.summary.health == "ok" else "advice"

    @property
    def health(self) -> str:
        """The health in words."""
        if self.error is not None:
            return text.line(f"{self.error.title}: {self.error.message}", _HEALTH_CHARS)
        return text.line(self.summary.health, _HEALTH_CHARS)

    def to_json(self) -> dict[str, Any]:
        """Return the card as JSON-able values."""
        summary = self.summary
        return {
            "label": self.label,
            "state": self.state,
            "health": self.health,
            "rows": summary.num_rows,
            "columns": summary.num_columns,
            "bytes": summary.num_bytes,
            "versions": summary.num_versions,
            "version": summary.version,
            "time": "" if summary.committed is None else text.moment(summary.committed),
            "time_ms": text.milliseconds(summary.committed),
            "bars": [list(bar) for bar in self.bars],
            "code": table_code(summary.uri),
            "error": None if self.error is None else self.error.to_json(),
        }


def table_code(uri: str) -> dict[str, str]:
    """Return the lines that open a table."""
    return offered(Python("lance_nb.explore").call(uri), magic("open", uri))


def table_card(listing: TableListing, name: str) -> TableCard:
    """Describe a table of a listing; one that cannot be opened has the error on its card."""
    from lance_nb.dataset.database import TableSummary, summary_of

    uri = ""
    try:
        uri = listing.place(name).uri
        opened = listing.dataset(name)
        summary = summary_of(name, opened)
        numbers = opened.version_numbers()
        shown = numbers[-MAX_BARS:]
        bars: Sequence[Bar] = [(number, "", None) for number in shown]
        if is_on_this_machine(uri) and (summary.num_fragments or 0) <= MAX_FRAGMENTS:
            bars = [
                (bar.version, bar.operation, (bar.added or 0) + (bar.removed or 0))
                for bar in version_bars(opened, shown, numbers)
            ]
    except LanceError as error:
        card = error_card(error)
        health = f"cannot be opened: {error}"
        return TableCard(TableSummary(name, uri, can_open=False, health=health), error=card)
    return TableCard(summary, tuple(bars))


# How cards are sorted: by a value of the summary, and whether the largest comes first.
ORDERS: dict[str, tuple[str, bool]] = {
    "name": ("name", False),
    "name-down": ("name", True),
    "changed": ("committed", True),
    "rows": ("num_rows", True),
    "size": ("num_bytes", True),
    "versions": ("num_versions", True),
}


def sorted_tables(
    names: Sequence[str], cards: dict[int, TableCard], filter_text: str, order: str
) -> list[int]:
    """Return the places of the tables whose name holds a text, sorted; unknown values come last."""
    needle = filter_text.casefold()
    places = [index for index, name in enumerate(names) if needle in text.name(name).casefold()]
    value, is_descending = ORDERS[order]
    if value == "name":
        return places[::-1] if is_descending else places
    values = {index: getattr(cards[index].summary, value) for index in places if index in cards}
    values = {
        index: known_value for index, known_value in values.items() if known_value is not None
    }
    first = sorted(values, key=values.__getitem__, reverse=is_descending)
    return [*first, *(index for index in places if index not in values)]
