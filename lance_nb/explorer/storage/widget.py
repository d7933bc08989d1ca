"""The storage of a version: fragments, deleted rows, files and pages, advice, space.

The ES modules are ``storage.js`` for the tab, and ``fragment_map.js``, ``deletion_view.js`` and
``space_view.js`` for its pieces. Requests (all with ``branch`` and ``version``):

=================== ======================================== ================================
request             args                                     result
=================== ======================================== ================================
storage.map         first, stop                              models.fragments, + buffers
storage.fragment    fragment                                 models.fragments
storage.deletions   fragment, first, rows, pixels            models.fragments, + buffer
storage.deleted                                              most: {id, rows, deleted} of fragments
storage.pages       path                                     models.fragments
storage.health                                               advice: models.storage_report
storage.space       (long work)                              models.storage_report
=================== ======================================== ================================

The trait ``screen`` of ``DeletionMap`` has one more part, ``fragment``: the one to begin with, null
for the one with most deleted rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.session import MAX_COUNT, RecentAnswers, RequestHandlers, Target
from lance_nb.explorer.source import StoredSource, stored_source
from lance_nb.explorer.storage.fragments import (
    MAX_PIXELS,
    deletion_bitmap,
    file_pages,
    fragment_detail,
    fragment_map,
    most_deleted,
)
from lance_nb.explorer.storage.picture import DELETIONS, FRAGMENTS, SPACE, STORAGE
from lance_nb.explorer.storage.storage_report import space_use, storage_health
from lance_nb.explorer.widget import LanceWidget

MAX_PATH_CHARS = 4096


class StorageHandlers(RequestHandlers):
    """Handlers about storage."""

    prefix: ClassVar[str] = "storage"

    def _stored(self, args: Mapping[str, Any]) -> StoredSource:
        return stored_source(self.source(args))

    def on_map(self, args: Mapping[str, Any]) -> Answer:
        """Return the map of a range of fragments."""
        first = integer(args, "first", low=0, high=MAX_COUNT)
        stop = integer(args, "stop", low=0, high=MAX_COUNT)
        drawn_map = fragment_map(self._stored(args), first, stop)
        return Answer(drawn_map.to_json(), drawn_map.buffers)

    def on_fragment(self, args: Mapping[str, Any]) -> Answer:
        """Return what a fragment is made of."""
        fragment = integer(args, "fragment", low=0, high=MAX_COUNT)
        return Answer(fragment_detail(self._stored(args), fragment).to_json())

    def on_deletions(self, args: Mapping[str, Any]) -> Answer:
        """Return a range of a deletion vector as pixels."""
        bitmap = deletion_bitmap(
            self._stored(args),
            integer(args, "fragment", low=0, high=MAX_COUNT),
            integer(args, "first", low=0, high=MAX_COUNT),
            num_rows=integer(args, "rows", low=1, high=MAX_COUNT),
            max_pixels=integer(args, "pixels", low=1, high=MAX_PIXELS),
        )
        return Answer(bitmap.to_json(), (bitmap.pixels,))

    def on_deleted(self, args: Mapping[str, Any]) -> Answer:
        """Return the fragments with most deleted rows."""
        deleted = most_deleted(self._stored(args))
        return Answer({"most": [entry.to_json() for entry in deleted]})

    def on_pages(self, args: Mapping[str, Any]) -> Answer:
        """Return the pages of a data file."""
        path = words(args, "path", MAX_PATH_CHARS)
        return Answer(file_pages(self._stored(args), path).to_json())

    def on_health(self, args: Mapping[str, Any]) -> Answer:
        """Return advice."""
        advice = storage_health(self._stored(args))
        return Answer({"advice": [entry.to_json() for entry in advice]})

    def on_space(self, args: Mapping[str, Any]) -> Job:
        """Account for the bytes of all versions."""
        source = self._stored(args)

        def work(progress: Progress) -> Answer:
            space = space_use(source.space(progress=progress))
            self.session.keep(RecentAnswers).space = space
            return Answer(space.to_json())

        return Job(work)


class StorageView(LanceWidget):
    """Where the bytes, files and deletions of a version lie."""

    entry: ClassVar[str] = "storage/storage.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    handlers_type: ClassVar[type[RequestHandlers]] = StorageHandlers
    view: ClassVar[View] = STORAGE


class FragmentMap(LanceWidget):
    """The fragments of a version: width is rows, height bytes per row, hatched what is deleted.

    ``FragmentMap("photos.lance")`` or ``FragmentMap(ds)``, at the version that ``ds`` is at.
    """

    entry: ClassVar[str] = "storage/fragment_map.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    handlers_type: ClassVar[type[RequestHandlers]] = StorageHandlers
    view: ClassVar[View] = FRAGMENTS


class DeletionMap(LanceWidget):
    """The deletion vector of a fragment as a bitmap of any size.

    ``DeletionMap("photos.lance")`` begins with the fragment that has most deleted rows,
    ``DeletionMap(ds, fragment=3)`` with that one.
    """

    entry: ClassVar[str] = "storage/deletion_view.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    handlers_type: ClassVar[type[RequestHandlers]] = StorageHandlers
    view: ClassVar[View] = DELETIONS

    def __init__(
        self, dataset: Target, fragment: int | None = None, *, height: int | None = None
    ) -> None:
        super().__init__(dataset, height=height)
        self.screen = self.screen | {"fragment": fragment}
        if self._session is not None:
            self._session.on_screen = {self.view.name: {"fragment": fragment}}


class SpaceView(LanceWidget):
    """Where the bytes of the folder are: by state, by version, tag and branch, orphans.

    ``SpaceView("photos.lance")`` or ``SpaceView(ds)``, at the version that ``ds`` is at.
    """

    entry: ClassVar[str] = "storage/space_view.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    handlers_type: ClassVar[type[RequestHandlers]] = StorageHandlers
    view: ClassVar[View] = SPACE
