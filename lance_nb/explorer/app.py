"""The explorer: one card with header, timeline, tabs, a detail pane, and the same as code.

A database is shown as the cards of its tables (``DatabaseExplorer``), which open as such a card.

The card is one widget whose ES module (``app.js``) mounts the views' modules; they share the kernel
connection and the first screen. What stands in a tab is named in ``registry``; each view is also a
widget of its own.

Limits: nothing is written before a person opens the lock in the header. A dataset that cannot be
opened gives a card with the reason, and ``.error``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lance_nb.dataset.database import Database, database
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, LanceError
from lance_nb.explorer import assets, text
from lance_nb.explorer.drawing import Panel, svg_of
from lance_nb.explorer.history.picture import HEADER, VERSIONS
from lance_nb.explorer.html_export import Snapshot, plain_json, snapshot_page, take_snapshot
from lance_nb.explorer.messages import Answer, Handler, cost_since, words
from lance_nb.explorer.picture_view import Shown, View
from lance_nb.explorer.registry import (
    TABS,
    DatabaseTables,
    RetentionHandlers,
    ReviewHandlers,
    RowEditHandlers,
)
from lance_nb.explorer.rows.row_page import Window
from lance_nb.explorer.rows.row_query import query_of
from lance_nb.explorer.session import FIRST_WINDOW, Session, Target, check_target, place_of
from lance_nb.explorer.source import Ref, Source
from lance_nb.explorer.static_rendering import StaticRendering
from lance_nb.explorer.version_refs import MAIN, is_connection, open_connection, open_source
from lance_nb.explorer.widget import LanceWidget
from lance_nb.storage import meter

MAX_SNAPSHOT_TABLES = 500


def draw_explorer(session: Session, shown: Shown) -> list[Panel]:
    """Draw the explorer: header, timeline, and the tab that is open."""
    tab = words({"tab": shown.get("tab", "rows")}, "tab", 20)
    if tab not in TABS:
        raise InvalidInputError(f"tab must be one of {', '.join(TABS)}")
    return [
        *HEADER.panels(session, {}),
        *VERSIONS.panels(session, shown if tab == "changes" else {}),
        *TABS[tab].view.panels(session, shown),
    ]


class Explorer(LanceWidget):
    """Look at a dataset: its versions, its rows, and what each version did.

    Created by ``lance_nb.explore``.

    Examples:
        >>> explorer = lance_nb.explore(ds)
        >>> explorer.version, explorer.dataset.count_rows(), explorer.error
        (1, 10, None)
        >>> explorer.selection.num_rows, explorer.row_ids, explorer.filter
        (0, [], None)
        >>> explorer.columns == ds.schema.names, explorer.compare
        (True, None)
        >>> explorer.to_html("points.html").name
        'points.html'
        >>> ds.insert(rows)
        >>> explorer.travel(2)
        >>> explorer.version
        2
        >>> explorer.close()
    """

    entry: ClassVar[str] = assets.EXPLORER
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline", "rows", "detail")
    default_height: ClassVar[int] = 440
    view: ClassVar[View] = View("", draw_explorer)

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests of all tabs."""
        own = {
            kind: do for tab in TABS.values() for kind, do in tab.request_handlers(session).items()
        }
        simulator = session.keep(RetentionHandlers).handlers()
        own |= session.keep(ReviewHandlers).handlers()
        own |= session.keep(RowEditHandlers).handlers()
        return own | simulator

    @property
    def heading(self) -> str:
        """What is shown, for the title of a page.

        Examples:
            >>> lance_nb.explore(ds).heading == ds.name
            True
        """
        return "lance_nb" if self._session is None else text.name(self.dataset.name)

    @property
    def version(self) -> int:
        """The version shown; numbers of different branches overlap, see ``dataset.branch``."""
        return self.dataset.version

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        versions: Sequence[int | str] | None = None,
        rows: int = 50,
    ) -> Path:
        """Write what is shown to one HTML file that works offline, without a kernel.

        It holds the first ``rows`` rows (up to 500), the storage map and the changes of the version
        shown and of ``versions`` (refs; by default the newest 20 of the branch, the tagged ones and
        the newest of each branch), and the timeline and the refs: about 12 MB at the most. Returns
        the path. Raises InvalidInputError when there is no dataset, LanceError for a ref that does
        not exist.
        """
        dataset = self._open_session().dataset
        snapshot = take_snapshot(
            dataset, self.request_handlers, self.parts, versions=versions, rows=rows
        )
        target = Path(path)
        page = snapshot_page(dataset.name, self.to_svg(), snapshot, self.height)
        target.write_text(page, "utf-8")
        return target

    @property
    def selection(self) -> pa.Table:
        """The rows selected in the grid, of the version shown."""
        return self._open_session().selection()

    @property
    def row_ids(self) -> list[int]:
        """The row ids of the rows selected in the grid, in the order of the grid."""
        session = self._open_session()
        selected = session.selected
        return [
            row_id
            for first, stop in sorted(selected.ranges)
            for row_id in selected.query.rows(session.dataset, ["_rowid"], first, stop - first)[
                "_rowid"
            ].to_pylist()
        ]

    @property
    def filter(self) -> str | None:
        """The filter of the grid, in SQL; words that are searched for are a part of it."""
        return query_of(self._grid()).filter

    @property
    def columns(self) -> list[str]:
        """The names of the columns that the grid shows, in its order."""
        session, shown = self._open_session(), self._grid().get("shown")
        choice = None if shown is None else session.row_orders.columns(shown)
        return replace(query_of(self._grid()), columns=choice).names(session.dataset)

    @property
    def compare(self) -> tuple[int | str, int] | None:
        """The version at the handle A, and the one shown; None where there is no A.

        A version of the branch shown is its number, another one is ``"branch:number"``.
        """
        branch, ends = self.dataset.branch, self._open_session().on_screen.get("range")
        if not isinstance(ends, Mapping) or not isinstance(ends.get("a"), Mapping):
            return None
        if place_of(ends.get("b") or {}) != (branch, self.version):
            return None  # the page has not said yet what it compares this version with
        name, number = place_of(ends["a"])
        return number if name == branch else f"{name or MAIN}:{number}", self.version

    def _grid(self) -> Mapping[str, Any]:
        """Return the query of the grid, as the page described it; it is text of this user."""
        shown = self._open_session().on_screen.get("rows")
        return shown if isinstance(shown, Mapping) else {}


class DatabaseExplorer(Explorer):
    """Look at the tables of a database, and open one of them in place.

    Created by ``lance_nb.explore`` for a folder of tables. While a table is open, everything that
    an explorer of a dataset has is that of the table; before that it raises InvalidInputError.

    Examples:
        >>> import pyarrow as pa
        >>> _ = lance_nb.write_dataset(pa.table({"id": [1, 2]}), f"{uri}_db/photos.lance")
        >>> explorer = lance_nb.explore(f"{uri}_db")
        >>> explorer.table_names()
        ['photos']
        >>> explorer.open_table("photos")
        >>> explorer.dataset.count_rows()
        2
        >>> explorer.close_table()
    """

    def __init__(
        self, database: Database, *, height: int | None = None, read_only: bool = False
    ) -> None:
        """List the tables. Raises StorageError, NotSupportedError."""
        before, started = meter.reading(), time.perf_counter()
        self._tables: DatabaseTables | None = DatabaseTables(database)
        self._table: str | None = None
        self._read_only = read_only
        super().__init__(None, height=height)
        self.screen = self._tables_screen() | {"io": cost_since(before, started)}

    @property
    def database(self) -> Database:
        """The database."""
        return self._open_tables().database

    @property
    def heading(self) -> str:
        """What is shown, for the title of a page."""
        if self._session is not None or self._tables is None:
            return super().heading
        return text.name(self.database.name)

    def table_names(self) -> list[str]:
        """List the names of the tables, as they were when they were listed last."""
        return list(self._open_tables().names)

    def open_table(self, name: str) -> None:
        """Show a table.

        Args:
            name: one of ``table_names()``.

        Raises DatasetNotFoundError and what opening a dataset raises; the screen stays then.
        """
        tables = self._open_tables()
        if name not in tables.names:
            raise DatasetNotFoundError(f"{self.database.uri}/{name}", "no such table")
        session = Session(self.database.dataset(name), read_only=self._read_only)
        self._table = name
        self.screen = self._screen_of(session)
        self._session = session

    def close_table(self) -> None:
        """Show the tables again; what is staged and what is running stays."""
        if self._table is not None:
            self._open_tables().forget(self._table)
        self._session, self._table = None, None
        self.screen = self._tables_screen()

    def close(self) -> None:
        """Close the widget and release the datasets; what the page shows stays."""
        self._tables = None
        super().close()

    def picture(self) -> StaticRendering:
        """Return the static rendering, text and HTML, which a saved notebook keeps."""
        if self._table is None and self._tables is not None:
            return self._tables.picture()
        return super().picture()

    def to_svg(self) -> str:
        """Return what is on screen as one SVG that needs no script and no other file."""
        if self._table is not None or self._tables is None:
            return super().to_svg()
        return svg_of(self._label(), self._tables.panels())

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        versions: Sequence[int | str] | None = None,
        rows: int = 50,
    ) -> Path:
        """Write what is shown to one HTML file that works offline, without a kernel.

        Args:
            path: of the file.
            versions: of the table that is open, see ``Explorer.to_html``.
            rows: of the table that is open.

        Without an open table the file has the cards of the first ``MAX_SNAPSHOT_TABLES`` tables,
        which can be filtered and sorted. Returns the path. Raises LanceError.
        """
        if self._table is not None:
            return super().to_html(path, versions=versions, rows=rows)
        tables = self._open_tables()
        tables.describe(MAX_SNAPSHOT_TABLES)
        snapshot = Snapshot()
        snapshot.screens.append(plain_json(self._tables_screen() | {"kept": True}))
        target = Path(path)
        page = snapshot_page(self.heading, self.to_svg(), snapshot, self.height)
        target.write_text(page, "utf-8")
        return target

    def _open_session(self) -> Session:
        if self._session is None and self._tables is not None:
            raise InvalidInputError("no table is open: open one with open_table(name)")
        return super()._open_session()

    def _open_tables(self) -> DatabaseTables:
        if self._tables is None:
            raise InvalidInputError("this explorer was closed")
        return self._tables

    def _screen_of(self, session: Session, window: Window = FIRST_WINDOW) -> dict[str, Any]:
        return super()._screen_of(session, window) | {
            "tables": self._open_tables().to_json(self._table)
        }

    def _tables_screen(self) -> dict[str, Any]:
        tables = self._open_tables()
        state = {"error": None, "tables": tables.to_json(), "code": tables.code()}
        return state | {"locked": None, "io": None}

    def _handlers(self) -> dict[str, Handler]:
        if self._tables is None:
            return super()._handlers()
        own: dict[str, Handler] = {"tables.open": self._on_open, "tables.close": self._on_close}
        if self._session is None:
            own["shown"] = self._tables.on_shown
        return super()._handlers() | own | self._tables.handlers()

    def _on_open(self, args: Mapping[str, Any]) -> Answer:
        self.open_table(self._open_tables().name_of(args))
        return Answer()

    def _on_close(self, _args: Mapping[str, Any]) -> Answer:
        self.close_table()
        return Answer()

    def _has_content(self) -> bool:
        return self._tables is not None

    def _label(self) -> str:
        if self._table is not None or self._tables is None:
            return super()._label()
        return f"Tables of {text.name(self.database.name)}"

    def __repr__(self) -> str:
        return f"<{self._label()}>" if self._tables is None else self.picture().text


def explore(
    target: Target | Database,
    version: Ref | None = None,
    *,
    height: int | None = None,
    read_only: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Explorer:
    """Open a dataset and show it: versions, rows, and what each version did.

    A folder of tables, such as a LanceDB database, is shown as one card for each table; a card
    opens the explorer of its table in place. What cannot be opened gives a card that says why; the
    exception is in ``.error``.

    Args:
        target: a path, a URI or a dataset; a folder of tables, the address of a Lance namespace
            (``rest+http://...``), or what ``lance_nb.database`` or ``lancedb.connect`` returns.
        version: a number, a tag, a branch, ``"branch:number"`` or ``"HEAD~2"``.
        height: of the tabs, in pixels.
        read_only: keep the lock in the header shut.
        storage_options: as for ``lance_nb.dataset``.

    Raises InvalidInputError when ``target`` is not something that could be a dataset.

    Examples:
        >>> lance_nb.explore(uri, 1).version
        1
    """
    if not isinstance(target, Database) and not is_connection(target):
        check_target(target)
    try:
        opened = _found(target, version, storage_options)
        if isinstance(opened, Database):
            return DatabaseExplorer(opened, height=height, read_only=read_only)
    except LanceError as error:
        return Explorer(error, height=height, read_only=read_only)
    return Explorer(opened, height=height, read_only=read_only)


def _found(
    target: Target | Database, version: Ref | None, storage_options: Mapping[str, Any] | None
) -> Source | Database:
    """Open a dataset, or a database where there is none. Raises LanceError."""
    if isinstance(target, Database):
        return target
    if is_connection(target):
        return open_connection(target, storage_options)
    if not isinstance(target, (str, os.PathLike)):
        return open_source(target, version, storage_options)
    options = None if storage_options is None else dict(storage_options)
    if str(target).startswith(("rest+http://", "rest+https://")):
        return database(target, storage_options=options)
    try:
        return open_source(target, version, storage_options)
    except DatasetNotFoundError:
        if version is not None:
            raise
        opened = database(target, storage_options=options)
        if not _has_tables(opened):
            raise
        return opened


def _has_tables(opened_database: Database) -> bool:
    """Whether a folder is one of tables; one that cannot be listed is none."""
    try:
        return len(opened_database) > 0
    except LanceError:
        return False
