"""One page of a data file as a line of a table, whatever the file's version."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from lance_nb.encodings.describe import describe_array_encoding, describe_layout
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.metadata import ARRAY_ENCODING_URL, PageMetadata


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


def describe(page: PageMetadata) -> str:
    """Spell out how a 2.x page is encoded; "?" and the type url where that is not known."""
    try:
        if page.encoding_url == ARRAY_ENCODING_URL:
            return describe_array_encoding(page.array_encoding())
        return describe_layout(page.layout())
    except (NotSupportedError, CorruptFileError, DecodeError):
        return f"? ({page.encoding_url[:80]})"
