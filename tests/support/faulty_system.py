"""A local disk whose calls fail when they are told to: before they do their work, or after it.

The modules that write local files get an ``os`` of their own. Every call of it that changes or
reads a disk is counted from 1; the plan says at which number an error comes, which one, and whether
the call does its work first, as behind a network whose reply is lost.

    with failing_at(3, errno.EIO, after=True) as system:
        dataset.insert(rows)
    system.calls   # ["open", "write", "fsync", ...]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lance_nb.storage import (
    links,
    local,
    local_files,
    local_naming,
    local_writer,
    sync_later,
    system_calls,
)

MODULES = (links, local, local_files, local_naming, local_writer, sync_later, system_calls)
CALLS = (
    "open",
    "close",
    "write",
    "writev",
    "fsync",
    "link",
    "rename",
    "unlink",
    "makedirs",
    "mkdir",
    "readlink",
    "stat",
    "lstat",
    "fstat",
    "pread",
    "scandir",
)
Plan = Callable[[int, str], tuple[int, bool] | None]
Call = Callable[..., Any]


class WatchedSystem:
    """The module ``os``; ``watch(name, real, arguments, options)`` makes the calls in ``names``."""

    def __init__(self, names: Container[str], watch: Callable[[str, Call, Any, Any], Any]) -> None:
        self._names = names
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in self._names:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            return self._watch(name, real, arguments, options)

        return call


class FaultySystem(WatchedSystem):
    """The module ``os``, with errors where the plan wants them."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(CALLS, self._planned)
        self.calls: list[str] = []
        self._plan = plan

    def _planned(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        self.calls.append(name)
        fault = self._plan(len(self.calls), name)
        if fault is None:
            return real(*arguments, **options)
        code, after = fault
        if after or name == "close":  # a descriptor is closed whatever is reported
            done = real(*arguments, **options)
            if name == "open":
                os.close(done)  # whoever is told of a failure has nothing to close
            if name == "scandir":
                done.close()
        raise OSError(code, os.strerror(code))


@contextmanager
def in_place_of_os(system: Any) -> Iterator[None]:
    """Let the modules that write local files call ``system`` where they call ``os``."""
    with pytest.MonkeyPatch.context() as inside:
        for module in MODULES:
            if hasattr(module, "os"):
                inside.setattr(module, "os", system)
        yield


@contextmanager
def failing_at(number: int, code: int, *, after: bool, times: int = 1) -> Iterator[FaultySystem]:
    """Let ``times`` calls fail from the call ``number`` on (0: none fails)."""

    def plan(at: int, _name: str) -> tuple[int, bool] | None:
        return (code, after) if number and number <= at < number + times else None

    system = FaultySystem(plan)
    with in_place_of_os(system):
        yield system
