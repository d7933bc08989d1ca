"""Small batches of a stream joined to larger ones, because each costs the same work per column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_nb.encodings.arrow_parts import concatenated
from lance_nb.errors import NotSupportedError


def joined_batches(
    batches: Iterable[pa.RecordBatch], run_rows: int, run_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about ``run_rows`` rows or ``run_bytes`` bytes; none is empty.

    Never holds more than one run; a batch that is larger goes through as it is.
    """
    waiting: list[pa.RecordBatch] = []
    num_rows = size_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        num_rows += batch.num_rows
        size_bytes += batch.nbytes
        if num_rows >= run_rows or size_bytes >= run_bytes:
            yield from _one(waiting)
            waiting, num_rows, size_bytes = [], 0, 0
    yield from _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    parts = zip(*(one.columns for one in batches), strict=True)
    try:
        columns = [concatenated(one) for one in parts]
    except NotSupportedError:  # the dictionaries of all are more than the keys can number
        return batches
    if not columns:
        return batches
    return [pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)]
