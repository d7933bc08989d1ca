"""The log of what was done to a dataset from explorers and ``%lance`` of this process.

Layout of ``OperationsLog.to_json``, the newest first::

    entries  [{id, time_ms, who, what, label, branch, version, code: {python, magic},
               undo: {label, reason}, state}]        hidden: how many more

``label`` is the version that an act created, empty for acts on refs and files. ``reason`` says why
the act cannot be undone now; empty if it can. ``state`` is "done" or "undone". Undoing an act is an
act of its own, with an entry and a commit of its own.

Limits: ``MAX_ENTRIES`` entries of each dataset are kept, those of ``MAX_LOGS`` datasets;
``MAX_SHOWN`` are shown. The log lives as long as the process; what other processes do is on the
timeline.
"""

from __future__ import annotations

import getpass
import itertools
import threading
from collections import OrderedDict, deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.log.undo import NoUndo, Undo, Undone
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.refs.ref_list import Place
from lance_nb.explorer.refs.ref_preview import Code
from lance_nb.session import provenance

MAX_ENTRIES = 200
MAX_SHOWN = 50
MAX_LOGS = 32
_LOGS: OrderedDict[str, OperationsLog] = OrderedDict()


class Entry:
    """One act. ``place`` has the version that it created, None for acts on refs and files."""

    def __init__(
        self,
        id: int,
        time: datetime,
        *,
        who: str,
        action: str,
        code: Code,
        place: Place | None,
        undo: Undo,
    ) -> None:
        self.id = id
        self.time = time
        self.who = who
        self.action = action
        self.code = code
        self.place = place
        self.undo = undo
        self.is_undone = False

    def to_json(self, dataset: LanceDataset) -> dict[str, Any]:
        """Return the entry as JSON-able values, with whether it can be undone now."""
        branch, version = self.place or (None, None)
        reason = "it was undone" if self.is_undone else self.undo.reason(dataset)
        return {
            "id": self.id,
            "time_ms": text.milliseconds(self.time),
            "who": text.name(self.who),
            "what": text.line(self.action, 200),
            "label": "" if version is None else text.ref_label(branch, version),
            "branch": branch,
            "version": version,
            "code": dict(self.code),
            "undo": {"label": self.undo.label, "reason": text.line(reason)},
            "state": "undone" if self.is_undone else "done",
        }


class OperationsLog:
    """The acts on one dataset."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=MAX_ENTRIES)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def record(
        self, title: str, code: Code, undo: Undo | None = None, place: Place | None = None
    ) -> Entry:
        """Add an act that was done."""
        undo = undo or NoUndo("how to undo this is not known")
        moment = datetime.now(UTC)
        entry = Entry(
            next(self._numbers),
            moment,
            who=_author(),
            action=title,
            code=code,
            place=place,
            undo=undo,
        )
        self.entries.append(entry)
        return entry

    def undo(self, entry_id: int, dataset: LanceDataset, progress: Progress) -> Undone:
        """Undo an act, and record that. Raises InvalidInputError when it cannot be undone."""
        with self._lock:
            entry = next((entry for entry in self.entries if entry.id == entry_id), None)
            if entry is None:
                raise InvalidInputError("this entry is no longer in the log")
            if entry.is_undone:
                raise InvalidInputError("this was undone already")
            reason = entry.undo.reason(dataset)
            if reason:
                raise InvalidInputError(f"this cannot be undone: {reason}")
            done = entry.undo.run(dataset, progress)
            entry.is_undone = True
            branch = None if done.place is None else done.place[0]
            place = None if done.version is None else (branch, done.version)
            self.record(f"Undo: {entry.action}", done.code, done.undo, place)
            return done

    def to_json(self, dataset: LanceDataset) -> dict[str, Any]:
        """Return the newest entries as JSON-able values."""
        shown = list(self.entries)[::-1][:MAX_SHOWN]
        return {
            "entries": [entry.to_json(dataset) for entry in shown],
            "hidden": len(self.entries) - len(shown),
        }


def operations_log_of(uri: str) -> OperationsLog:
    """Return the log of a dataset, however it was opened."""
    key = uri if "://" in uri else str(Path(uri).absolute())
    log = _LOGS.setdefault(key, OperationsLog())
    _LOGS.move_to_end(key)
    while len(_LOGS) > MAX_LOGS:
        _LOGS.popitem(last=False)
    return log


def _author() -> str:
    """Return who acts: as the notebook says, else the user of this process."""
    author = provenance.properties().get(provenance.AUTHOR)
    if author:
        return author
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name for the user id, as in some containers
        return "unknown user"
