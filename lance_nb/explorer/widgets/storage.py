"""The storage of a version: a map of its fragments, what each is made of, advice, and space.

Its ES module is ``storage.js``. Requests (all with ``branch`` and ``version``):

=================== ======================================== ================================
request             args                                     result
=================== ======================================== ================================
storage.map         first, stop                              models.fragment_map, + buffers
storage.fragment    fragment                                 models.fragment_detail
storage.deletions   fragment, first, rows, pixels            models.deletion_bitmap, + buffer
storage.pages       path                                     models.file_pages
storage.health                                               advice: models.storage_health
storage.space       (long work)                              models.space_use
=================== ======================================== ================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.models.deletion_bitmap import MAX_PIXELS, deletion_bitmap
from lance_nb.explorer.models.file_pages import file_pages
from lance_nb.explorer.models.fragment_detail import fragment_detail
from lance_nb.explorer.models.fragment_map import fragment_map
from lance_nb.explorer.models.space_use import space_use
from lance_nb.explorer.models.storage_health import storage_health
from lance_nb.explorer.models.stored import StoredSource, stored
from lance_nb.explorer.session import MAX_COUNT, Session, place_of
from lance_nb.explorer.widget import LanceWidget

MAX_PATH_CHARS = 4096


class StorageView(LanceWidget):
    """Where the bytes, files and deletions of a version lie."""

    entry: ClassVar[str] = "widgets/storage.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)

    @classmethod
    def answers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about storage."""
        return _Answers(session).handlers()


class _Answers:
    def __init__(self, session: Session) -> None:
        self._session = session

    def handlers(self) -> dict[str, Handler]:
        return {
            "storage.map": self._on_map,
            "storage.fragment": self._on_fragment,
            "storage.deletions": self._on_deletions,
            "storage.pages": self._on_pages,
            "storage.health": self._on_health,
            "storage.space": self._on_space,
        }

    def _source(self, args: Mapping[str, Any]) -> StoredSource:
        return stored(self._session.open(place_of(args)))

    def _on_map(self, args: Mapping[str, Any]) -> Answer:
        first = integer(args, "first", low=0, high=MAX_COUNT)
        stop = integer(args, "stop", low=0, high=MAX_COUNT)
        found = fragment_map(self._source(args), first, stop)
        return Answer(found.to_json(), found.buffers)

    def _on_fragment(self, args: Mapping[str, Any]) -> Answer:
        fragment = integer(args, "fragment", low=0, high=MAX_COUNT)
        return Answer(fragment_detail(self._source(args), fragment).to_json())

    def _on_deletions(self, args: Mapping[str, Any]) -> Answer:
        found = deletion_bitmap(
            self._source(args),
            integer(args, "fragment", low=0, high=MAX_COUNT),
            integer(args, "first", low=0, high=MAX_COUNT),
            integer(args, "rows", low=1, high=MAX_COUNT),
            integer(args, "pixels", low=1, high=MAX_PIXELS),
        )
        return Answer(found.to_json(), (found.pixels,))

    def _on_pages(self, args: Mapping[str, Any]) -> Answer:
        path = words(args, "path", MAX_PATH_CHARS)
        return Answer(file_pages(self._source(args), path).to_json())

    def _on_health(self, args: Mapping[str, Any]) -> Answer:
        advice = storage_health(self._source(args))
        return Answer({"advice": [one.to_json() for one in advice]})

    def _on_space(self, args: Mapping[str, Any]) -> Job:
        source = self._source(args)

        def work(progress: Progress) -> Answer:
            return Answer(space_use(source.space(progress=progress)).to_json())

        return Job(work)
