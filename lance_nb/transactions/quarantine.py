"""Put files of a dataset aside where no reader looks, and back: nothing is ever deleted.

Layout, in the folder of the dataset::

    _quarantine/<id>/repair.json       what was put aside, why, when, from where
    _quarantine/<id>/files/<path>      each file, below the path that it had

A file is moved by writing it to its new place, reading it back, and deleting the old one last: an
interruption leaves both. The record is written before anything is moved.

Limits: files of more than ``FILE_BYTES_MAX`` bytes are not moved. Clean-ups of this library and of
pylance leave the folder alone: who needs none of it deletes it by hand.
Source: ours; neither library reads a folder of that name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    ObjectExistsError,
    ObjectNotFoundError,
    RefNotFoundError,
)
from lance_nb.format.layout import HINT_PATH, QUARANTINE
from lance_nb.storage.base import Store, check_path, sync_folder

RECORD = "repair.json"
FILE_BYTES_MAX = 1 << 30
_FILES = "files"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Quarantine:
    """One repair's place for files that are put aside."""

    root: Store
    id: str

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Say what is going to be put aside, before it is."""
        text = json.dumps(record, indent=2, ensure_ascii=False)
        self.root.write_if_absent(f"{QUARANTINE}/{self.id}/{RECORD}", text.encode())

    def keep(self, path: str) -> None:
        """Copy a file, and make sure that the copy is one.

        Raises ObjectNotFoundError, CorruptFileError (the copy differs), InvalidInputError (the file
        is too large).
        """
        size = self.root.size(path)
        if size > FILE_BYTES_MAX:
            raise InvalidInputError(f"{path} has {size} bytes, more than {FILE_BYTES_MAX}: move it")
        place = self.place(path)
        data = self.root.read(path)
        with suppress(ObjectExistsError):  # of an attempt that was interrupted: compared below
            self.root.write_if_absent(place, data)
        if not _same(self.root.read(place), data):
            found = "other bytes"
            raise CorruptFileError(f"{self.root.uri}/{place}", None, f"a copy of {path}", found)

    def move(self, path: str) -> None:
        """Put a file aside. Raises as ``keep``."""
        self.keep(path)
        self.root.delete(path)
        sync_folder(self.root, path.rpartition("/")[0])  # else a power failure undoes the repair

    def place(self, path: str) -> str:
        """Return where a file is put."""
        return f"{QUARANTINE}/{self.id}/{_FILES}/{check_path(path)}"

    def put_back(self) -> tuple[list[str], list[str]]:
        """Move every file back; return the paths that were, and those whose place is taken.

        A hint is put back over another one. What is back is no longer here. Raises
        RefNotFoundError when there is no such repair.
        """
        record = _read(self.root, self.id)
        back, taken = [], []
        for path in record["files"]:
            place = self.place(path)
            try:
                data = self.root.read(place)
            except ObjectNotFoundError:
                continue  # it was never moved, or is back already
            if path.endswith(HINT_PATH):
                self.root.write(path, data)
            else:
                try:
                    self.root.write_if_absent(path, data)
                except ObjectExistsError:
                    if not _same(self.root.read(path), data):
                        taken.append(path)
                        continue
            self.root.delete(place)
            back.append(path)
        return back, taken


def repairs(root: Store) -> list[str]:
    """List the ids of the repairs that have put something aside, oldest first."""
    found = [one.name.split("/") for one in root.list_recursive(QUARANTINE)]
    return sorted({parts[0] for parts in found if parts[1:] == [RECORD]})


def _read(root: Store, identity: str) -> dict[str, Any]:
    try:
        record: Any = json.loads(bytes(root.read(f"{QUARANTINE}/{check_path(identity)}/{RECORD}")))
    except (ObjectNotFoundError, InvalidInputError, ValueError, RecursionError) as error:
        raise RefNotFoundError("repair", identity, tuple(repairs(root))) from error
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        raise CorruptFileError(
            f"{QUARANTINE}/{identity}/{RECORD}", None, "a list of files", "other"
        )
    return dict(record)


def record_of(
    identity: str, now_ns: int, steps: Iterable[tuple[str, str, str]], files: Iterable[str]
) -> dict[str, Any]:
    """Return the record of a repair; ``steps`` are (kind, what, why)."""
    moment = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC)
    return {
        "id": identity,
        "at": moment.isoformat(),
        "put_aside_by": "lance_nb doctor --repair; --undo moves the files back",
        "steps": [{"kind": kind, "what": what, "why": why} for kind, what, why in steps],
        "files": list(files),
    }


def _same(one: memoryview, other: memoryview) -> bool:
    if len(one) != len(other):
        return False
    steps = range(0, len(one), _CHUNK_BYTES)
    return all(
        bytes(one[at : at + _CHUNK_BYTES]) == bytes(other[at : at + _CHUNK_BYTES]) for at in steps
    )
