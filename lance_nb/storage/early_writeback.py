"""Asks the system to begin writing a file's bytes to disk while more of them are being made.

Nothing is promised by it: ``fsync`` at the end still is what makes a file durable, and finds less
to do. Linux only (``sync_file_range``, which Python does not offer); elsewhere nothing happens.

Limits: bytes are handed over in runs of ``RUN_BYTES``.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

RUN_BYTES = 8 * 1024 * 1024
_WRITE = 2  # SYNC_FILE_RANGE_WRITE: begin writing dirty pages, do not wait


class EarlyWriteback:
    """What has been handed over of one file that is written from start to end."""

    def __init__(self) -> None:
        self._start = 0

    def reached(self, descriptor: int, size_bytes: int) -> None:
        """Hand over what is new; ``size_bytes`` is how much of the file has been written."""
        new = size_bytes - self._start
        if new >= RUN_BYTES and _sync_file_range is not None:
            _sync_file_range(descriptor, self._start, new, _WRITE)  # a failure costs nothing
            self._start = size_bytes


def _system_call() -> Callable[[int, int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call


_sync_file_range = _system_call()
