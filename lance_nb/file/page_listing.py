"""One page of a data file as a line of a table, whatever the file's version."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageListing:
    """A page: where it is, how big, how encoded; what is known of its values.

    ``column`` is a column number, in 0.1 files a field id. ``size_bytes`` and what follows
    ``encoding`` are None where the file does not say.
    """

    column: int
    page: int
    num_rows: int
    size_bytes: int | None
    offset_bytes: int | None
    encoding: str
    null_count: int | None = None
    min_value: str | None = None
    max_value: str | None = None
