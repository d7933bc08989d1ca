"""What a Python worker of Spark's does once, after its first task of ours.

Spark's daemon keeps its workers and collects garbage after every task, through all objects that the
process has: with pyarrow and this package imported, that took two thirds of a worker's time in a
scan of short tasks. What is there after a first task is there to stay, so it is put aside.

Source: PySpark 4.3, ``pyspark/daemon.py`` (``gc.collect`` after each task); ``gc.freeze``.
"""

from __future__ import annotations

import gc
import sys

_DAEMON = "pyspark.daemon"


def settle() -> None:
    """Leave everything imported so far out of later collections, if a daemon of Spark's makes them.

    Does nothing in other processes, and nothing the second time.
    """
    if gc.get_freeze_count() == 0 and _is_worker():
        gc.freeze()


def _is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") == _DAEMON
