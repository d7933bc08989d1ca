"""What a Python worker of Spark's does before and after its tasks of ours.

Before: the JVM sends a worker the function first and then, in a message of its own, the rows. It
leaves Nagle's algorithm on, so the rows wait until the worker's side has acknowledged the function,
and Linux puts acknowledging off for 40 ms: a fifth of a job whose tasks take 0.2 s. A function is
read before the rows are, so what is unpickled with it can ask for the acknowledgement at once.

After: Spark's daemon keeps its workers and collects garbage after every task, through all objects
that the process has: with pyarrow and this package imported, that took two thirds of a worker's
time in a scan of short tasks. What was imported is there to stay, so it is put aside, and again
when a later task has imported more.

Limits: sockets over TCP on Linux, workers of the daemon. Asking the collector how much it has put
aside walks through all of it, which takes as long as what is saved: the modules are counted.
Source: PySpark 4.3, ``pyspark/daemon.py`` (``gc.collect`` after each task), ``pyspark/worker.py``;
tcp(7), ``TCP_QUICKACK``; RFC 896, RFC 1122 section 4.2.3.2; ``gc.freeze``.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

_DAEMON = "pyspark.daemon"
_OPEN_FILES = Path("/proc/self/fd")


class Arrival:
    """A part of every function that is sent to workers; where it is unpickled, rows come sooner."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        return _arrive, ()


ARRIVAL = Arrival()


def _arrive() -> Arrival:
    if _is_worker():
        acknowledge()
    return ARRIVAL


def acknowledge() -> None:
    """Acknowledge at once what this process has received over TCP; nothing where it cannot be."""
    if not hasattr(socket, "TCP_QUICKACK") or not _OPEN_FILES.is_dir():
        return
    for number in [int(one.name) for one in _OPEN_FILES.iterdir()]:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                _acknowledge(number)
        except OSError:  # closed meanwhile, or not connected
            continue


def _acknowledge(number: int) -> None:
    one = socket.socket(fileno=number)
    try:
        if one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    finally:
        one.detach()  # whoever opened it goes on with it


@dataclass(slots=True)
class _Aside:
    num_modules: int = 0


_aside = _Aside()


def settle() -> None:
    """Leave everything imported so far out of later collections, if a daemon of Spark's makes them.

    Does nothing in other processes, and nothing until more is imported.
    """
    if len(sys.modules) > _aside.num_modules and _is_worker():
        gc.collect()  # the daemon would right after: no garbage is put aside
        gc.freeze()
        _aside.num_modules = len(sys.modules)


def _is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") == _DAEMON
