"""Manifests that were read or written last, known again by the end of their file.

Manifests never change, but a dataset may be removed and another one made in its place. So one
counts as known only if its file has the same size and the same last bytes: all of a small file, of
a larger one the last 64 KiB, in which the name of its transaction has to be: nobody else uses it.

Limits: ``_SMALL`` small manifests and ``_LARGE`` larger ones of at most ``_LARGE_BYTES`` a process.
Source: spec page "table format" (``Manifest.transaction_file``); measured: parsing 10,000 fragments
twice was a quarter of an append.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from lance_nb.format.manifest import TAIL_BYTES, Manifest

_SMALL = 16
_LARGE = 2
_LARGE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Known:
    size_bytes: int
    tail: bytes
    manifest: Manifest


# By place, the oldest first. Several threads use them: no step is one that another can cut in two.
_small: OrderedDict[str, _Known] = OrderedDict()
_large: OrderedDict[str, _Known] = OrderedDict()


def is_remembered(where: str) -> bool:
    """Tell whether ``recall`` may know the file at a place: if not, it need not be looked at."""
    return where in _small or where in _large


def recall(
    where: str, tail: bytes | memoryview, size_bytes: int, *, whole: bool = False
) -> Manifest | None:
    """Return what a file of this size that ends with ``tail`` says, None if it is not known.

    ``tail`` is the last ``TAIL_BYTES`` of the file, or all of it. ``whole``: with the sections that
    lie before the manifest.
    """
    found = (_large if size_bytes > TAIL_BYTES else _small).get(where)
    if found is None or found.size_bytes != size_bytes or bytes(tail[-TAIL_BYTES:]) != found.tail:
        return None
    manifest = found.manifest
    sections = (manifest.index_section, manifest.transaction_section)
    if whole and any(one is not None and one.data is None for one in sections):
        return None
    return manifest


def remember(where: str, tail: bytes | memoryview, size_bytes: int, manifest: Manifest) -> None:
    """Note what the file at ``where`` holds: who wrote it need not parse it again."""
    end = bytes(tail[-TAIL_BYTES:])
    known, most = _small, _SMALL
    if size_bytes > TAIL_BYTES:
        known, most = _large, _LARGE
        name = manifest.transaction_file.encode()
        if size_bytes > _LARGE_BYTES or not name or name not in end:
            return
    known.pop(where, None)
    known[where] = _Known(size_bytes, end, manifest)
    with suppress(KeyError):  # others have made room meanwhile
        while len(known) > most:
            known.popitem(last=False)
