"""The explorer: one card with header, timeline, tabs, a detail pane, and the same as code.

The card is one widget whose ES module (``app.js``) mounts the views' modules; they share the kernel
connection and the first screen. What stands in a tab is named in ``registry``; each view is also a
widget of its own.

Limits: nothing is written before a person opens the lock in the header. A dataset that cannot be
opened gives a card with the reason, and ``.error``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import assets
from lance_nb.explorer.assets import ViewModule
from lance_nb.explorer.html_export import html_page, take_snapshot
from lance_nb.explorer.messages import Answer, Handler, words
from lance_nb.explorer.models.refs import open_source
from lance_nb.explorer.models.source import Ref
from lance_nb.explorer.pictures import screen
from lance_nb.explorer.registry import TABS, RetentionHandlers, ReviewHandlers
from lance_nb.explorer.session import Session, Target, check_target
from lance_nb.explorer.widget import LanceWidget

MAX_ENTRY_CHARS = 64


class Explorer(LanceWidget):
    """Look at a dataset: its versions, its rows, and what each version did.

    Created by ``lance_nb.explore``.

    Examples:
        >>> explorer = lance_nb.explore(ds)
        >>> explorer.version, explorer.dataset.count_rows(), explorer.error
        (1, 10, None)
        >>> explorer.selection.num_rows
        0
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
    view: ClassVar[screen.View] = screen.EXPLORER

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests of all tabs, and the one that loads the views of a tab."""
        own = {kind: do for tab in TABS for kind, do in tab.request_handlers(session).items()}
        simulator = session.keep(RetentionHandlers).handlers()
        own |= session.keep(ReviewHandlers).handlers()
        return own | simulator | {"views.load": _load_views}

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
        page = html_page(dataset.name, self.to_svg(), snapshot.to_json(), self.height)
        target.write_text(page, "utf-8")
        return target

    @property
    def selection(self) -> pa.Table:
        """The rows selected in the grid, of the version shown."""
        return self._open_session().selection()


def _load_views(args: Mapping[str, Any]) -> Answer:
    """Send the module of a tab that is opened for the first time; returns its key in the page."""
    entry = words(args, "entry", MAX_ENTRY_CHARS)
    if entry not in assets.LATE_VIEWS:
        raise InvalidInputError(f"no view is loaded later as {entry!r}")
    return Answer({"key": ViewModule.late(entry, again=args.get("again") is True).key})


def explore(
    target: Target,
    version: Ref | None = None,
    *,
    height: int | None = None,
    read_only: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Explorer:
    """Open a dataset and show it: versions, rows, and what each version did.

    A dataset that cannot be opened gives a card that says why; the exception is in ``.error``.

    Args:
        target: a path, a URI or a dataset.
        version: a number, a tag, a branch, ``"branch:number"`` or ``"HEAD~2"``.
        height: of the tabs, in pixels.
        read_only: keep the lock in the header shut.
        storage_options: as for ``lance_nb.dataset``.

    Raises InvalidInputError when ``target`` is not something that could be a dataset.

    Examples:
        >>> lance_nb.explore(uri, 1).version
        1
    """
    check_target(target)
    try:
        source = open_source(target, version, storage_options)
    except LanceError as error:
        return Explorer(error, height=height, read_only=read_only)
    return Explorer(source, height=height, read_only=read_only)
