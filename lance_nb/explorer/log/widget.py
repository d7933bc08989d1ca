"""What was done from explorers and ``%lance`` of this process, and how it is undone.

Its ES module is ``operations_log.js``. Requests:

========== =================== ====================================================
request    args                result
========== =================== ====================================================
log.list                       entries, hidden: staging.operations_log
log.undo   id (long work)      words, place, parts, entries, hidden
========== =================== ====================================================

Nothing is written while the lock is shut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.dataset import LanceDataset
from lance_nb.errors import LanceError
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.picture import VIEW
from lance_nb.explorer.messages import Answer, Job, Progress, integer
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.refs.ref_list import Place, place_json
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers
from lance_nb.explorer.source import writable_dataset
from lance_nb.explorer.widget import LanceWidget


class LogHandlers(RequestHandlers):
    """Handlers about the log."""

    prefix: ClassVar[str] = "log"

    def on_list(self, args: Mapping[str, Any]) -> Answer:
        """Return the newest entries."""
        dataset = self.session.dataset
        if not isinstance(dataset, LanceDataset):
            return Answer({"entries": [], "hidden": 0})
        return Answer(operations_log_of(dataset.uri).to_json(dataset))

    def on_undo(self, args: Mapping[str, Any]) -> Job:
        """Undo an act."""
        self.session.check_unlocked()
        entry_id = integer(args, "id", low=0, high=MAX_COUNT)
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            log = operations_log_of(dataset.uri)
            done = log.undo(entry_id, dataset, progress)
            self._follow(done.place, dataset)
            place = self.session.dataset
            return Answer(
                {
                    "words": done.words,
                    "place": place_json((place.branch, place.version)),
                    "parts": self.session.parts_json(("timeline", "card")),
                    **log.to_json(dataset),
                }
            )

        return Job(work)

    def _follow(self, place: Place | None, dataset: LanceDataset) -> None:
        """Go to the version that was created, and leave a branch that was deleted."""
        branches = [None, *dataset.branches.names()]
        if dataset.branch not in branches and dataset.branch is not None:
            self.session.forget(dataset.branch)
        elif place is None or place[0] != dataset.branch:
            return
        try:
            self.session.stand(place or (None, 1))
        except LanceError:
            self.session.travel("main")


class OperationsLogView(LanceWidget):
    """The log of what was done from here, with a button that undoes it."""

    entry: ClassVar[str] = "log/operations_log.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    handlers_type: ClassVar[type[RequestHandlers]] = LogHandlers
    view: ClassVar[View] = VIEW
