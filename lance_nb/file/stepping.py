"""Run decoders that say which bytes they need (``encodings.steps``) on a data file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lance_nb.encodings.steps import Steps, together
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.source import FileSource

T = TypeVar("T")


def run(source: FileSource, decoders: Sequence[Steps[T]]) -> list[T]:
    """Run decoders side by side: each round of reading serves all of them."""
    steps = together(decoders)
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(source.arrays(wanted))
    except StopIteration as end:
        results: list[T] = end.value
        return results


def located(steps: Steps[T], path: str, offset_bytes: int | None, place: str) -> Steps[T]:
    """Run a decoder and add to its errors where in the file it was reading."""
    try:
        result = yield from steps
    except CorruptFileError as exc:
        raise exc.located(path, offset_bytes, place) from exc
    except NotSupportedError as exc:
        exc.add_note(f"{path}, {place}")
        raise
    return result
