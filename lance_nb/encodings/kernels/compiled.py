"""The one place that decides whether a loop runs compiled by numba or in its numpy form.

numba costs about half a second and 64 MiB before its first result, so a process pays for it only
when the work pays it back: each call says how much it could save, the savings missed so far are
added up, and once they reach ``COST_SECONDS`` the loops are compiled (the price paid is thus never
more than twice the best possible). Without numba, or if it cannot compile, numpy does everything.

Limits: decisions are per process; compiled code is cached on disk where numba finds a place to
write, and compiled again in every process where it does not.
"""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from lance_nb.encodings.kernels import loops

COST_SECONDS = 0.6  # import plus first use; 0.4 with a warm cache, 1.2 without


class Mode(Enum):
    """When to use compiled loops."""

    AUTO = "when the work pays for it"
    ALWAYS = "from the first call on"
    NEVER = "never"


class _State:
    """What this process has decided, missed and compiled so far."""

    def __init__(self) -> None:
        self.mode = Mode.AUTO
        self.missed_seconds = 0.0
        self.kernels: dict[str, Callable[..., Any] | None] = {}
        self.lock = threading.Lock()


_state = _State()


def kernel(name: str, saved_seconds: float) -> Callable[..., Any] | None:
    """Return the compiled loop ``name``, or None when the caller should use its numpy form.

    ``saved_seconds`` is how much time the compiled loop would save in this one call.
    """
    if _state.mode is Mode.NEVER or (_state.mode is Mode.AUTO and not _pays(saved_seconds)):
        return None
    with _state.lock:
        if name not in _state.kernels:
            _state.kernels[name] = _compile(getattr(loops, name))
        return _state.kernels[name]


def is_available() -> bool:
    """Tell whether numba is installed (it is not imported)."""
    return importlib.util.find_spec("numba") is not None


@contextlib.contextmanager
def forced(mode: Mode) -> Iterator[None]:
    """Use ``mode`` inside a ``with`` block: for tests and benchmarks."""
    before, _state.mode = _state.mode, mode
    try:
        yield
    finally:
        _state.mode = before


def _pays(saved_seconds: float) -> bool:
    if _state.missed_seconds >= COST_SECONDS:
        return True
    _state.missed_seconds += saved_seconds
    return _state.missed_seconds >= COST_SECONDS


def _compile(loop: Callable[..., Any]) -> Callable[..., Any] | None:
    try:
        import numba
    except ImportError:
        return None
    try:
        compiled: Callable[..., Any] = numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # no folder to cache in can be written
        compiled = numba.njit(nogil=True)(loop)
    return compiled
