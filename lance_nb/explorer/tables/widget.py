"""The tables of a database as cards, which open in place.

Its ES module is ``tables.js``. Requests:

=============== ============================ ======================================================
request         args                         result
=============== ============================ ======================================================
tables.list     listing, first               labels: the names from ``first`` on
tables.describe listing, tables (long work)  listing, cards by place, see ``models.table_list``
tables.refresh                               a new listing: what ``screen`` has as ``tables``
tables.open     listing, table               the trait ``screen`` becomes that of the table
tables.close                                 the trait ``screen`` has the cards again
=============== ============================ ======================================================

A table is named by its place in a listing, which has a number: names may be long, and hold what
does not survive as JSON. Layout of ``tables`` in the trait ``screen``: ``name``, ``uri``,
``listing``, ``num_tables``, ``labels`` (the first of them), ``cards`` by place, ``looked_at``,
``open`` (null, or ``{table, label}``: that table is shown).

Limits: ``MAX_LABELS`` names in the first screen and in an answer, ``MAX_DESCRIBED`` tables in a
request, ``THREADS`` of them at the same time. Of a database on this machine ``FIRST_CARDS`` tables
are described with the first screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from lance_nb.code_lines import Python, magic, offered
from lance_nb.dataset.database import TABLES_MAX, Database, TableSummary
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.drawing import Panel
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.session import MAX_COUNT
from lance_nb.explorer.source import is_on_this_machine
from lance_nb.explorer.static_rendering import StaticRendering, render_tables
from lance_nb.explorer.tables.picture import draw_tables
from lance_nb.explorer.tables.table_list import (
    LOOKED_AT,
    ORDERS,
    TABLES_SHOWN,
    TableCard,
    sorted_tables,
    table_card,
)
from lance_nb.storage.threads import run_side_by_side

MAX_LABELS = 1000
MAX_DESCRIBED = 16
THREADS = 6
FIRST_CARDS = 24
MAX_FILTER_CHARS = 300


class DatabaseTables:
    """A listing of the tables of a database, and the cards described so far."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._number = 0
        self._on_screen = ("", "name", 0)
        self.refresh()

    def refresh(self) -> None:
        """List the tables again, without what was cached. Raises StorageError."""
        self._listing = self.database.listing()
        self._number += 1
        self._cards: dict[int, TableCard] = {}
        if is_on_this_machine(self.database.uri):
            self.describe(FIRST_CARDS)

    def describe(self, num_tables: int) -> None:
        """Describe the first tables, as far as they are not."""
        places = [
            index for index in range(len(self.names[:num_tables])) if index not in self._cards
        ]
        tasks = [partial(table_card, self._listing, self.names[index]) for index in places]
        self._cards.update(zip(places, run_side_by_side(tasks, THREADS), strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tables."""
        return self._listing.names

    def forget(self, name: str) -> None:
        """Forget the description of a table, which may have been changed since."""
        self._cards.pop(self.names.index(name), None)

    def code(self) -> dict[str, str]:
        """Return the lines that show the tables."""
        uri = self.database.uri
        return offered(Python("lance_nb.explore").call(uri), magic("tables", uri))

    def to_json(self, open_table: str | None = None) -> dict[str, Any]:
        """Return the tables as JSON-able values, or only which one is open."""
        state: dict[str, Any] = {
            "name": text.name(self.database.name),
            "uri": text.line(self.database.uri),
            "listing": self._number,
            "num_tables": len(self.names),
        }
        if open_table is not None:
            open_index = self.names.index(open_table)
            return state | {"open": {"table": open_index, "label": text.name(open_table)}}
        return state | {
            "open": None,
            "labels": self._labels(0),
            "cards": {str(index): card.to_json() for index, card in self._cards.items()
                      if index < MAX_LABELS},
            "looked_at": LOOKED_AT,
        }  # fmt: skip

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the requests about all tables."""
        return {
            "tables.list": self._on_list,
            "tables.describe": self._on_describe,
            "tables.refresh": self._on_refresh,
        }

    def name_of(self, args: Mapping[str, Any]) -> str:
        """Return the name of the table that a request is about. Raises InvalidInputError."""
        self._check_listing(args)
        return self.names[integer(args, "table", low=0, high=len(self.names) - 1)]

    def picture(self) -> StaticRendering:
        """Return the tables as text and static HTML."""
        names = self.names[:TABLES_SHOWN]
        summaries = [
            self._cards[index].summary
            if index in self._cards
            else TableSummary(name, "", can_open=True, health="")
            for index, name in enumerate(names)
        ]
        return render_tables(self.database, summaries, len(self.names))

    def panels(self) -> list[Panel]:
        """Draw the cards in sight, as far as the browser has said what is."""
        filter_text, order, first = self._on_screen
        places = sorted_tables(self.names, self._cards, filter_text, order)
        cards = [(text.name(self.names[index]), self._cards.get(index)) for index in places[first:]]
        return [
            draw_tables(text.name(self.database.name), len(self.names), cards, hidden_above=first)
        ]

    def _labels(self, first: int) -> list[str]:
        return [text.name(name) for name in self.names[first : first + MAX_LABELS]]

    def _check_listing(self, args: Mapping[str, Any]) -> None:
        if integer(args, "listing", low=0, high=MAX_COUNT) != self._number:
            raise InvalidInputError("the tables were listed anew: choose again")

    def on_shown(self, args: Mapping[str, Any]) -> Answer:
        """Keep what the browser says is on its screen: filter, order, first card in sight."""
        shown = args.get("tables")
        if not isinstance(shown, Mapping) or shown.get("order") not in ORDERS:
            raise InvalidInputError(f"tables.order must be one of {', '.join(ORDERS)}")
        filter_text = words(shown, "filter", MAX_FILTER_CHARS)
        first = integer(shown, "first", low=0, high=MAX_COUNT)
        self._on_screen = (filter_text, shown["order"], first)
        return Answer()

    def _on_list(self, args: Mapping[str, Any]) -> Answer:
        self._check_listing(args)
        return Answer({"labels": self._labels(integer(args, "first", low=0, high=TABLES_MAX))})

    def _on_refresh(self, _args: Mapping[str, Any]) -> Answer:
        self.refresh()
        return Answer(self.to_json())

    def _on_describe(self, args: Mapping[str, Any]) -> Job:
        self._check_listing(args)
        indices_asked = args.get("tables")
        if not isinstance(indices_asked, list) or not 0 < len(indices_asked) <= MAX_DESCRIBED:
            raise InvalidInputError(f"tables must be a list of up to {MAX_DESCRIBED} places")
        last = len(self.names) - 1
        places = [integer({"table": index}, "table", low=0, high=last) for index in indices_asked]
        listing, cards, number = self._listing, self._cards, self._number

        def work(progress: Progress) -> Answer:
            progress(0, len(places))  # also raises when the request was cancelled
            tasks = [partial(table_card, listing, listing.names[index]) for index in places]
            table_cards = {}
            for index, card in zip(places, run_side_by_side(tasks, THREADS), strict=True):
                table_cards[str(index)] = card.to_json()
                cards[index] = card
                progress(len(table_cards), len(places))
            return Answer({"listing": number, "cards": table_cards})

        return Job(work)
