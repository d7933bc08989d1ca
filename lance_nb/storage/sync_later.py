"""Deferred fsync: files are made durable in the background and waited for where that matters.

A change writes data files, deletion files and then the manifest that names them. Only the manifest
needs the others to be durable first; one fsync after another is most of the time of a small change.
Inside ``synced_together`` finished files are synced by the thread pool, and ``settle`` waits for
all of them: every durable write to the local disk begins with it, and so does the end of the block.

Layout: pending syncs are kept per thread; each holds a descriptor of its file and of its folder.
Limits: at most ``WAITING_MAX`` are pending per thread, and those of all threads hold about an
eighth of the descriptors that the process may have; then the oldest is waited for.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lance_nb.storage.system_calls import descriptors_max
from lance_nb.storage.threads import begin

if TYPE_CHECKING:
    from concurrent.futures import Future

WAITING_MAX = 32
_LIMIT_PER_SYNC = 16  # two descriptors of a pending sync are an eighth of these


class _Waiting(threading.local):
    """The pending syncs of one thread; None outside of a block."""

    syncs: deque[Future[None]] | None = None


_waiting = _Waiting()
_blocks: set[int] = set()  # the threads that are inside of a block


@contextmanager
def synced_together() -> Iterator[None]:
    """Let files that are finished in this block be synced in the background.

    All of them are durable when it ends without an error. Raises what a sync raised.
    """
    if _waiting.syncs is not None:  # the block around this one waits
        yield
        return
    _waiting.syncs = deque()
    _blocks.add(threading.get_ident())
    try:
        yield
        settle()
    finally:
        _blocks.discard(threading.get_ident())
        _waiting.syncs = None


def sync_later(descriptor: int, sync_file: Callable[[int], None]) -> bool:
    """Make an open file durable in the background; the caller may close it at once.

    ``sync_file`` gets a duplicate of the descriptor, so that ownership is clear at any interrupt.
    Returns False outside of a block, or if no thread can be started: the caller must sync then.
    """
    waiting = _waiting.syncs
    if waiting is None:
        return False
    own = os.dup(descriptor)
    first = begin(lambda: _closing(own, sync_file))
    if first is None:
        os.close(own)
        return False
    waiting.append(first)
    waiting_max = _waiting_max()
    while len(waiting) > waiting_max:
        waiting.popleft().result()
    return True


def _waiting_max() -> int:
    """Return how many syncs of this thread may wait: its share of the descriptors."""
    share = descriptors_max() // _LIMIT_PER_SYNC // max(len(_blocks), 1)
    return min(max(share, 1), WAITING_MAX)


def settle() -> None:
    """Wait until every file that this thread finished is durable. Raises what a sync raised."""
    syncs = _waiting.syncs
    while syncs:
        syncs.popleft().result()


def _closing(descriptor: int, sync: Callable[[int], None]) -> None:
    try:
        sync(descriptor)
    finally:
        with suppress(OSError):  # of a duplicate: what fsync confirmed is durable all the same
            os.close(descriptor)
