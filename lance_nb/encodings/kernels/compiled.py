"""The one place that decides whether a loop runs compiled by numba or in its numpy form.

numba costs a second (0.5 to 1.4) and 64 MiB before its first result, so a process pays for it only
when the work pays it back: each piece of work says how much time a compiled loop could save, the
savings missed so far are added up, and once they reach ``COST_SECONDS`` the loops that are asked
for are made ready *in a thread of their own*. Until a loop is ready numpy goes on, so that nobody
waits for the compiler. Without numba, or if it cannot compile, numpy does everything.

Limits: decisions are per process; a loop is ready for one combination of argument types at a time.
Compiled code is cached on disk: beside this module where that folder can be written, else in the
user's cache folder (numba finds it), and compiled again in every process where neither works. A
process that was forked while loops were made ready stays with numpy: the compiler's locks may be
held by a thread that it does not have.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import numpy as np

from lance_nb.encodings.kernels import loops

COST_SECONDS = 1.0  # of making loops ready from a warm cache; several without one
_FLAGS = 0x1 | 0x100 | 0x400  # of an array: contiguous, aligned, writeable

Loop = Callable[..., Any]


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
        self.dispatchers: dict[str, Loop | None] = {}
        self.ready: dict[tuple[Any, ...], Loop | None] = {}
        self.waiting: list[tuple[tuple[Any, ...], str, tuple[Any, ...]]] = []
        self.thread: threading.Thread | None = None
        self.lock = threading.RLock()


_state = _State()


def pays(saved_seconds: float) -> bool:
    """Note work that a compiled loop would do faster by so much; tell whether to ask for one."""
    if _state.mode is not Mode.AUTO:
        return _state.mode is Mode.ALWAYS
    if _state.missed_seconds < COST_SECONDS:
        _state.missed_seconds += saved_seconds
    return _state.missed_seconds >= COST_SECONDS


def kernel(name: str, args: tuple[Any, ...]) -> Loop | None:
    """Return the compiled loop ``name`` for arguments like ``args``.

    None when the caller should use its numpy form: for good, or until the loop is ready.
    """
    if _state.mode is Mode.NEVER:
        return None
    if _state.mode is Mode.ALWAYS:
        return _dispatcher(_state, name)
    key = (name, *map(_kind, args))
    if key not in _state.ready:
        _ask(_state, key, name, args)
    return _state.ready.get(key)


def is_available() -> bool:
    """Tell whether numba is installed (it is not imported)."""
    return importlib.util.find_spec("numba") is not None


def wait_until_ready(timeout_seconds: float | None = None) -> None:
    """Wait until the loops asked for so far are ready: for tests and benchmarks."""
    thread = _state.thread
    if thread is not None:
        thread.join(timeout_seconds)


@contextlib.contextmanager
def forced(mode: Mode) -> Iterator[None]:
    """Use ``mode`` inside a ``with`` block: for tests and benchmarks."""
    before, _state.mode = _state.mode, mode
    try:
        yield
    finally:
        _state.mode = before


def _kind(argument: object) -> object:
    """Describe what numba's type of an argument depends on."""
    if isinstance(argument, np.ndarray):
        return argument.dtype.char, argument.ndim, argument.flags.num & _FLAGS
    if isinstance(argument, tuple):
        return tuple(map(_kind, argument))
    return type(argument)


def _ask(state: _State, key: tuple[Any, ...], name: str, args: tuple[Any, ...]) -> None:
    """Let the thread make a loop ready, unless it has been asked before."""
    with state.lock:
        if key in state.ready:
            return
        state.ready[key] = None
        state.waiting.append((key, name, args))
        if state.thread is None or not state.thread.is_alive():
            work = threading.Thread(target=_make_ready, args=(state,), daemon=True)
            work.name = "lance-nb-compiler"
            state.thread = work
            work.start()


def _make_ready(state: _State) -> None:
    """Compile what is waiting, one loop after the other."""
    while True:
        with state.lock:
            if not state.waiting:
                state.thread = None
                return
            key, name, args = state.waiting.pop(0)
        loop = _dispatcher(state, name)
        if loop is not None:
            _compile_for(loop, args)
        state.ready[key] = loop


def _compile_for(loop: Any, args: tuple[Any, ...]) -> None:
    """Compile a loop for the types of some arguments, or load it from the cache."""
    import numba

    typeof: Any = numba.typeof
    loop.compile(tuple(typeof(argument) for argument in args))


def _dispatcher(state: _State, name: str) -> Loop | None:
    """Return the loop as numba's function, None without numba."""
    with state.lock:
        if name not in state.dispatchers:
            state.dispatchers[name] = _jit(getattr(loops, name))
        return state.dispatchers[name]


def _jit(loop: Loop) -> Loop | None:
    try:
        import numba
    except ImportError:
        return None
    try:
        compiled: Loop = numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # no folder to cache in can be written
        compiled = numba.njit(nogil=True)(loop)
    return compiled


def _give_up_after_fork() -> None:
    """Start afresh in a child, without the thread and perhaps with locks that nobody frees."""
    global _state  # noqa: PLW0603
    was_busy = _state.thread is not None
    mode, ready = _state.mode, _state.ready
    fresh = _State()
    fresh.mode = Mode.NEVER if was_busy else mode
    if not was_busy:
        fresh.missed_seconds, fresh.ready = _state.missed_seconds, ready
        fresh.dispatchers = _state.dispatchers
    _state = fresh


os.register_at_fork(after_in_child=_give_up_after_fork)
