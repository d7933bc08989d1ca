"""Read a hostile dataset the way a user would, within bounds on time and memory."""

from __future__ import annotations

import pickle
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError
from tests.golden.copies import Change, edited_fragment, edited_manifest

CPU_SECONDS_MAX = 15.0  # two on a quiet machine; neighbours slow a processor down
WALL_SECONDS_MAX = 180.0  # for what waits instead of working; other jobs may hold the processor
MEMORY_BYTES_MAX = 512 << 20
MESSAGE_CHARS_MAX = 1500


class TooSlowError(BaseException):
    """Reading did not end in time; no handler for ordinary errors may swallow this."""


@contextmanager
def bounded() -> Iterator[None]:
    """Fail when what runs inside takes too much time or memory."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handlers = {
        number: signal.signal(number, stop) for number in (signal.SIGVTALRM, signal.SIGALRM)
    }
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS_MAX)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MEMORY_BYTES_MAX, f"{grown >> 20} MB more memory"


def read_everything(uri: object, **options: Any) -> pa.Table:
    """Open a dataset and look at it from all sides; return its rows."""
    dataset = lance_nb.dataset(str(uri), **options)
    count = dataset.count_rows()
    dataset.stats()
    dataset.history(limit=2)
    dataset.transaction()
    dataset.list_indices()
    for table in (dataset.inspect.fragments, dataset.inspect.data_files, dataset.inspect.columns):
        table().validate(full=True)
    for file in dataset.inspect.data_files()["path"].to_pylist():
        dataset.inspect.pages(file).validate(full=True)
    rows = dataset.to_table(with_row_id=True)
    _without_dates(rows).validate(full=True)
    assert rows.num_rows == count
    assert dataset.head(10).num_rows == min(count, 10)
    return rows


def _without_dates(table: pa.Table) -> pa.Table:
    """Leave out date64 columns: a type changed to that holds parts of days, which harm nobody."""
    kept = [field.name for field in table.schema if not pa.types.is_date64(field.type)]
    return table.select(kept)


def refused(read: Callable[[], object], *pieces: str) -> LanceError:
    """Check that reading ends in one error of ours whose text has every piece; return it."""
    with bounded(), pytest.raises(LanceError) as caught:
        read()
    error = caught.value
    text = " ".join([str(error), *getattr(error, "__notes__", ())])
    assert len(text) <= MESSAGE_CHARS_MAX
    for piece in pieces:
        assert piece in text, f"{piece!r} is missing in: {text}"
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again)) == (type(error), str(error))
    return error


def manifest_path(root: Path, version: int) -> Path:
    """Return the path of a version's manifest (V2 names)."""
    return root / "_versions" / f"{2**64 - 1 - version:020d}.manifest"


def edit_manifest(root: Path, version: int, change: Change) -> None:
    """Change the message of a version's manifest."""
    path = manifest_path(root, version)
    path.write_bytes(edited_manifest(path.read_bytes(), change))


def edit_fragment(
    root: Path, version: int, change: Callable[[Any], object], number: int = 0
) -> None:
    """Change one fragment of a version."""

    def edit(manifest: Any) -> None:
        manifest.fragments[number] = edited_fragment(manifest.fragments[number], change)

    edit_manifest(root, version, edit)
