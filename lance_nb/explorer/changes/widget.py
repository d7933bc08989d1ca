"""What changed between two versions: numbers at once, each level when it is opened.

Its ES module is ``changes.js``. Requests; all with ``a`` and ``b`` (each ``{branch, version}``) and
``key`` (columns that tell rows apart, or null):

=============== ========================================== =====================================
request         args                                       result
=============== ========================================== =====================================
changes.counts                                             models.change_summary
changes.near    end ("a" or "b"), versions (of that    near: [{version, counts}], those that
                end: its branch with these numbers)        could be counted in ``NEAR_S``
changes.place   ref (instead of a)                         place {branch, version}, counts: those
                                                           of place..b, if they can be made
changes.rows    kinds, offset, limit, first_column,        models.change_page, + buffers
                num_columns (long work)
changes.row     kinds, row (long work)                     models.change_page.changed_row
changes.thumbs  kinds, row, count, column, old (long work) thumbs: see rows/widget.py, + buffers
changes.summary (long work)                                models.change_page.known_rows
changes.level   level, kinds, offset, limit (long work)    models.change_page, + buffers
changes.files   kinds, row                                 models.change_page.fragment_files
changes.drift   first, count, exact (long work)            models.change_summary
=============== ========================================== =====================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, cast

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError, NotFoundError
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.changes.change_page import (
    MAX_ROWS,
    change_level,
    change_page,
    changed_images,
    changed_row,
    changed_rows,
    fragment_files,
    kinds_of,
    known_rows,
)
from lance_nb.explorer.changes.change_summary import MAX_COLUMNS as MAX_DRIFTS
from lance_nb.explorer.changes.change_summary import DiffCache, change_counts, change_drift, key_of
from lance_nb.explorer.changes.picture import VIEW
from lance_nb.explorer.media import THUMBNAIL_ROWS
from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.session import (
    MAX_COUNT,
    Place,
    RequestHandlers,
    Target,
    place_of,
    window_of,
)
from lance_nb.explorer.source import Source, compared_source
from lance_nb.explorer.version_refs import open_source
from lance_nb.explorer.widget import LanceWidget
from lance_nb.session.session import Session as OpenedSession
from lance_nb.table.diff import Diff

MAX_NEAR = 32
NEAR_S = 0.04


class ChangeHandlers(RequestHandlers):
    """Handlers about changes; the session keeps the diffs."""

    prefix: ClassVar[str] = "changes"

    def _diff(self, args: Mapping[str, Any]) -> Diff:
        a, b = _ends_of(args)
        return self.session.keep(DiffCache).diff(a, b, key_of(args))

    def on_counts(self, args: Mapping[str, Any]) -> Answer:
        """Count what differs, from the manifests."""
        return Answer(change_counts(self._diff(args), self.session.dataset.uri).to_json())

    def on_near(self, args: Mapping[str, Any]) -> Answer:
        """Count what differs for versions that a dragged handle may pass next."""
        ends = dict(zip("ab", _ends_of(args), strict=True))
        end, numbers = words(args, "end", 1), args.get("versions")
        if end not in ends or not isinstance(numbers, list) or len(numbers) > MAX_NEAR:
            raise InvalidInputError(f"end must be a or b, versions a list of up to {MAX_NEAR}")
        cache, near = self.session.keep(DiffCache), []
        until = time.monotonic() + NEAR_S
        for number in numbers:
            version = integer({"n": number}, "n", low=0, high=MAX_COUNT)
            passed = ends | {end: (ends[end][0], version)}
            with suppress(NotFoundError):  # cleaned up since
                diff = cache.passing(passed["a"], passed["b"], key_of(args))
                counts = change_counts(diff, self.session.dataset.uri).to_json()
                near.append({"version": version, "counts": counts})
            if time.monotonic() > until:
                break
        return Answer({"near": near})

    def on_place(self, args: Mapping[str, Any]) -> Answer:
        """Tell which version a typed ref names, and the numbers from there to B with it."""
        resolved = self.session.dataset.checkout_version(words(args, "ref", refs.MAX_CHARS))
        place = {"branch": resolved.branch, "version": resolved.version}
        counts = None
        with suppress(LanceError):  # asked for alone, the numbers say what is wrong
            counts = self.on_counts({**args, "a": place}).result
        return Answer({"place": place, "counts": counts})

    def on_rows(self, args: Mapping[str, Any]) -> Job:
        """Read a window of the rows that differ."""
        diff, window, kinds = self._diff(args), window_of(args), kinds_of(args)

        def work(progress: Progress) -> Answer:
            changed = changed_rows(diff, window, kinds, progress)
            return Answer(changed.to_json(), changed.page.buffers)

        return Job(work)

    def on_row(self, args: Mapping[str, Any]) -> Job:
        """Read one row in full."""
        diff, kinds, row = self._diff(args), kinds_of(args), _row_of(args)
        return _job(lambda _progress: changed_row(diff, kinds, row))

    def on_thumbs(self, args: Mapping[str, Any]) -> Job:
        """Return the thumbnails of some rows of a column, as they are or as they were."""
        diff, kinds, row = self._diff(args), kinds_of(args), _row_of(args)
        column = integer(args, "column", low=0, high=MAX_COUNT)
        rows = range(row, row + integer(args, "count", low=1, high=THUMBNAIL_ROWS))

        def work(_progress: Progress) -> Answer:
            images = changed_images(diff, kinds, column, rows, old=args.get("old") is True)
            about = [image.to_json(row) for image in images]
            return Answer({"thumbs": about}, tuple(image.data for image in images))

        return Job(work)

    def on_summary(self, args: Mapping[str, Any]) -> Job:
        """Compare all rows and count."""
        diff = self._diff(args)

        def count(progress: Progress) -> dict[str, Any]:
            diff.summary(progress=progress)
            return known_rows(diff)

        return _job(count)

    def on_level(self, args: Mapping[str, Any]) -> Job:
        """Read a window of another level."""
        diff, level = self._diff(args), words(args, "level", 40)
        start = integer(args, "offset", low=0, high=MAX_COUNT)
        limit = integer(args, "limit", low=1, high=MAX_ROWS)
        kinds = None if args.get("kinds") is None else kinds_of(args)

        def work(_progress: Progress) -> Answer:
            level_page = change_level(diff, level, start, limit=limit, kinds=kinds)
            page = change_page(level_page.window, start)
            facts = {"num_rows": level_page.num_rows, "places": list(level_page.places)}
            return Answer(page.to_json() | facts, page.buffers)

        return Job(work)

    def on_files(self, args: Mapping[str, Any]) -> Answer:
        """List the files that came or went with a fragment."""
        kinds = None if args.get("kinds") is None else kinds_of(args)
        return Answer(fragment_files(self._diff(args), _row_of(args), kinds))

    def on_drift(self, args: Mapping[str, Any]) -> Job:
        """Profile some columns on both sides."""
        diff = self._diff(args)
        first = integer(args, "first", low=0, high=MAX_COUNT)
        count = integer(args, "count", low=1, high=MAX_DRIFTS)
        exact = args.get("exact") is True
        return _job(
            lambda progress: change_drift(diff, first, count, exact=exact, progress=progress)
        )


class DiffView(LanceWidget):
    """What changed from ``a`` to ``b``: rows, cells, columns, files, settings.

    ``a`` and ``b`` are paths, URIs or datasets, two versions of one dataset. Alone, ``a`` is
    compared with the version before it; it may also be what ``ds.diff(a, b)`` returned. ``key``
    names the columns that tell rows apart, as for ``ds.diff``.
    """

    entry: ClassVar[str] = "changes/changes.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline")
    handlers_type: ClassVar[type[RequestHandlers]] = ChangeHandlers
    default_height: ClassVar[int] = 420
    view: ClassVar[View] = VIEW

    def __init__(
        self,
        a: Target | Diff,
        b: Target | None = None,
        *,
        key: Sequence[str] | str | None = None,
        height: int | None = None,
    ) -> None:
        older: Source | None = None
        newer: Source
        if isinstance(a, Diff):
            opened = cast("OpenedSession", a.ends.source)
            older, newer = (
                LanceDataset.from_opened(opened, snapshot) for snapshot in (a.ends.a, a.ends.b)
            )
            key = a.matched_by.key or None if key is None else key
        elif b is None:
            newer = open_source(a)
        else:
            older, newer = open_source(a), open_source(b)
        names = [key] if isinstance(key, str) else key
        if older is not None:
            compared_source(newer).diff(older, key=names)  # refuses what cannot be compared
        super().__init__(newer, height=height)
        start = None if older is None else {"branch": older.branch, "version": older.version}
        compare = {"a": start, "key": None if names is None else list(names)}
        self.screen = self.screen | {"compare": compare}
        if self._session is not None:
            self._session.on_screen = {self.view.name: compare}


def _ends_of(args: Mapping[str, Any]) -> tuple[Place, Place]:
    ends = []
    for name in ("a", "b"):
        place = args.get(name)
        if not isinstance(place, Mapping):
            raise InvalidInputError(f"{name} must be a version: {{branch, version}}")
        ends.append(place_of(place))
    return ends[0], ends[1]


def _job(make: Callable[[Progress], dict[str, Any]]) -> Job:
    return Job(lambda progress: Answer(make(progress)))


def _row_of(args: Mapping[str, Any]) -> int:
    return integer(args, "row", low=0, high=MAX_COUNT)
