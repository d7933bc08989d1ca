"""What a Python worker of Spark's does after its tasks of ours.

Spark's daemon keeps its workers and collects garbage after every task, through all objects that the
process has: with pyarrow and this package imported, that took two thirds of a worker's time in a
scan of short tasks. What was imported is there to stay, so it is put aside, and again when a later
task has imported more.

Limits: asking the collector how much it has put aside walks through all of it, which takes as long
as what is saved: the modules are counted instead.
Source: PySpark 4.3, ``pyspark/daemon.py`` (``gc.collect`` after each task); ``gc.freeze``.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass

_DAEMON = "pyspark.daemon"


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
