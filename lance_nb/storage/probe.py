"""Find out whether a store really creates objects exclusively, before a commit relies on it.

Servers and drivers that do not know the condition ignore it: both of two writers are told that
they created the object, and one commit is lost without a word. So before the first commit to a
server and bucket, one scratch object ``.probe-<id>`` is created twice (the second must be refused)
and another by ``RACERS`` at the same time (one may win). Both lie in the folder of the object to be
created, under a name that no reader of Lance looks at, and are removed.

Limits: the answer is kept for the life of the process. A probe cannot prove that a store is right;
it finds the stores that are wrong always or often.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lance_nb.errors import (
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)

PREFIX = ".probe-"
RACERS = 8
_START_S = 10.0

_answers: dict[str, str] = {}
_locks: dict[str, threading.Lock] = {}  # one probe per place, while other places go on
os.register_at_fork(after_in_child=_locks.clear)


@dataclass(frozen=True, slots=True)
class Scratch:
    """What the probe may do with a folder. ``create`` is the act that is put to the test."""

    create: Callable[[str, bytes], None]
    read: Callable[[str], bytes | memoryview]
    delete: Callable[[str], None]
    folder: str


def require_exclusive(place: str, scratch: Scratch) -> None:
    """Probe ``place`` unless that has been done.

    Raises NotSupportedError when the store cannot be trusted, StorageError when it cannot be told.
    """
    if place not in _answers:
        with _locks.setdefault(place, threading.Lock()):
            if place not in _answers:
                _answers[place] = find_fault(scratch)
    fault = _answers[place]
    if fault:
        raise NotSupportedError(
            f"cannot commit here: {fault}, so a commit could be lost without a word; "
            "commit through an external manifest store instead: storage_options="
            "{'manifest_store': 'sqlite:////shared/manifests.db'} (or redis, postgresql, dynamodb)"
        )


def forget() -> None:
    """Forget all answers: the next commit probes again."""
    _answers.clear()


def find_fault(scratch: Scratch) -> str:
    """Return what is wrong with a store, "" when nothing is."""
    return _twice(scratch) or _race(scratch)


def _twice(scratch: Scratch) -> str:
    path = _scratch_path(scratch.folder)
    try:
        _attempt(scratch, path, b"first")
        second = _attempt(scratch, path, b"second")
        if second or _content(scratch, path) != b"first":
            return "the store replaced an object that was to be created only if absent"
    finally:
        _remove(scratch, path)
    return ""


def _race(scratch: Scratch) -> str:
    path = _scratch_path(scratch.folder)
    barrier = threading.Barrier(RACERS)

    def racer(number: int) -> bool:
        barrier.wait(_START_S)
        return _attempt(scratch, path, _racer_bytes(number))

    try:
        with ThreadPoolExecutor(RACERS) as pool:
            won = list(pool.map(racer, range(RACERS)))
        if sum(won) > 1:
            return f"{sum(won)} of {RACERS} racing writers were told that they created one object"
        if True in won and _content(scratch, path) != _racer_bytes(won.index(True)):
            return "an object is not the one whose writer was told that it created it"
    finally:
        _remove(scratch, path)
    return ""


def _racer_bytes(number: int) -> bytes:
    return b"racer %d" % number


def _attempt(scratch: Scratch, path: str, data: bytes) -> bool:
    """Create an object; tell whether we did (a refusal may be an answer to our own request)."""
    try:
        scratch.create(path, data)
    except ObjectExistsError:
        return False
    return True


def _content(scratch: Scratch, path: str) -> bytes:
    try:
        return bytes(scratch.read(path))
    except ObjectNotFoundError:
        return b""


def _remove(scratch: Scratch, path: str) -> None:
    try:
        scratch.delete(path)
    except StorageError:
        return  # a scratch object that stays is in nobody's way


def _scratch_path(folder: str) -> str:
    name = f"{PREFIX}{uuid.uuid4().hex}"
    return f"{folder}/{name}" if folder else name
