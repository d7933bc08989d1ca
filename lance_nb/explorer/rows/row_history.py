"""List the history of one row, newest change first, as far back as requested.

Layout of a step: ``label``, ``branch``, ``version``, ``time``, ``time_ms``, ``operation``,
``message``, ``event`` (created, updated, moved, restored, deleted, extended, written, gone, found),
``fragment``, ``offset``, and ``cells``: ``[name, old, new]`` of the columns that differ, or of all
columns where the row is created or deleted; a side without a value is null. ``hidden`` counts cells
left out.

Limits: ``MAX_CELLS`` cells per step, ``VALUE_CHARS`` characters per value; the searches of
``MAX_KEPT`` rows are kept. If older versions were cleaned up, the history starts with the oldest
one that is left.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import CancelledError, InvalidInputError, LanceError, NotFoundError
from lance_nb.explorer import cells, text
from lance_nb.explorer.source import ComparedSource
from lance_nb.format.python_values import to_python
from lance_nb.format.schema import primary_key
from lance_nb.table.diff import has_row_ids
from lance_nb.table.diff.row_history import RowEvent, RowHistory
from lance_nb.table.diff.row_locator import read_window
from lance_nb.table.projection import project
from lance_nb.value_classes import dataclass

MAX_KEPT = 4
MAX_CELLS = 40
VALUE_CHARS = 240

Progress = Callable[[int, int], object]
Key = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The position of a row in the version shown, and the key columns by which it is matched."""

    branch: str | None
    version: int
    fragment: int
    offset: int
    key: Key = None


class _Search:
    """The part of a history that is known, and the search that continues it."""

    def __init__(self, history: RowHistory) -> None:
        self.history = history
        self.steps = iter(history)
        self.lock = threading.Lock()
        self.events: list[RowEvent] = []
        self.is_whole = False

    def go_on(self, upto: int, progress: Progress) -> None:
        """Search until ``upto`` steps are known. One search at a time."""
        with self.lock:
            while not self.is_whole and len(self.events) < upto:
                progress(len(self.events), 0)
                step = next(self.steps, None)
                self.is_whole = step is None
                if step is not None:
                    self.events.append(step)


class RowHistoryCache:
    """The searches of the rows that were requested last."""

    def __init__(self, _session: object) -> None:
        self._searches: OrderedDict[RowPlace, _Search] = OrderedDict()

    def steps(
        self, dataset: ComparedSource, row: RowPlace, upto: int, progress: Progress
    ) -> dict[str, Any]:
        """Return the newest ``upto`` steps; what was found before is not searched again.

        ``progress`` gets (steps found, 0) before each: what it raises ends the search for now.
        Raises NotFoundError, InvalidInputError.
        """
        life = self._searches.get(row)
        if life is None:
            life = _begin(dataset, row)
            self._searches[row] = life
            while len(self._searches) > MAX_KEPT:
                self._searches.popitem(last=False)
        try:
            life.go_on(upto, progress)
        except LanceError as error:
            if not isinstance(error, CancelledError):
                self._searches.pop(row, None)  # the search is over; the next request begins anew
            raise
        return {
            "label": text.line(life.history.label, 200),
            "followed": _followed(life.history.label),
            "steps": [_step(dataset, event) for event in life.events[:upto]],
            "whole": life.is_whole,
        }


def _begin(dataset: ComparedSource, row: RowPlace) -> _Search:
    address = row.fragment << 32 | row.offset
    key = _default_key(dataset) if row.key is None else row.key
    if key:
        history = dataset.row_history(key=values_at(dataset, row, key))
    else:
        history = dataset.row_history(address=address)
    return _Search(history)


def _default_key(dataset: ComparedSource) -> Key:
    """Return the unenforced primary key where rows have no stable ids of their own."""
    _, snapshot = dataset.opened
    if has_row_ids(snapshot):
        return None
    return tuple(primary_key(snapshot.manifest.schema)) or None


def values_at(dataset: ComparedSource, row: RowPlace, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of some columns of the row at a place. Raises NotFoundError."""
    _, snapshot = dataset.opened
    fragments = snapshot.manifest.fragments
    position = fragments.position_of(row.fragment)
    if position is None or not 0 <= row.offset < max(fragments[position].physical_rows, 1):
        raise NotFoundError(
            f"version {row.version} has no row in fragment {row.fragment} at offset {row.offset}"
        )
    projection = project(snapshot.manifest.schema, list(names))
    window = read_window(
        snapshot, projection, fragments[position], np.array([row.offset], np.int64)
    )
    return {name: to_python(window[name])[0] for name in window.schema.names}


def _followed(label: str) -> str:
    """Explain how the row is matched between versions."""
    if label == "stable row id":
        return "the row keeps its id through updates and compactions"
    if label.startswith("key"):
        return "the row is identified by the values of its key"
    return "an update writes the row to a new address, where it looks like a new row"


def place_of_row(row: pa.Table) -> tuple[int, int, str]:
    """Take fragment, offset and row id from a table of one row with ``_rowid`` and ``_rowaddr``."""
    if not row.num_rows:
        raise InvalidInputError("the row does not exist")
    address = int(row.column("_rowaddr")[0].as_py())
    return address >> 32, address & 0xFFFFFFFF, str(row.column("_rowid")[0].as_py())


def _step(dataset: ComparedSource, event: RowEvent) -> dict[str, Any]:
    old, new = event.old or {}, event.new or {}
    names = list(event.columns) or list(new or old)
    if event.event == "moved":
        names = []
    types = {name: dataset.schema.field(name).type for name in dataset.schema.names}
    shown = names[:MAX_CELLS]
    return {
        "label": text.ref_label(event.branch, event.version),
        "branch": event.branch,
        "version": event.version,
        "time": text.moment(event.timestamp),
        "time_ms": text.milliseconds(event.timestamp),
        "operation": text.name(event.operation or "operation not recorded"),
        "message": text.line(event.message or ""),
        "event": event.event,
        "fragment": event.fragment_id,
        "offset": event.offset,
        "cells": [_cell(name, old, new, types.get(name)) for name in shown],
        "hidden": len(names) - len(shown),
        "changes": bool(event.columns),
    }


def _cell(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any], kind: pa.DataType | None
) -> list[str | None]:
    sides = [value_text(side[name], kind) if name in side else None for side in (old, new)]
    return [text.name(name), *sides]


def value_text(value: Any, kind: pa.DataType | None) -> str:
    """Format a Python value as the grid does; ``kind`` is its expected type."""
    for arrow_type in (kind, None):
        try:
            return cells.scalar_text(pa.scalar(value, arrow_type), VALUE_CHARS)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return text.line(value, VALUE_CHARS)
