"""The roles of a page: a layout opens it, a reader decodes the rows that are wanted.

Source: message ``PageLayout`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lance_nb.encodings.base import (
    Bytes,
    Codecs,
    DecodedPage,
    PageBuffer,
    PageShape,
    Rows,
    Span,
)


class PageReader(Protocol):
    """A page whose index buffers (chunk metadata, repetition index, dictionary) are in memory."""

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Return the byte ranges that ``decode`` will need: sorted per buffer, merged."""
        ...

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Decode exactly ``rows``; ``buffers`` has at least the spans asked for."""
        ...


# ``layout`` is Any below: each arm has a message type of its own.
class Layout(Protocol):
    """One arm of PageLayout. ``layout`` below is the arm's own message."""

    def index_buffers(self, layout: Any, shape: PageShape) -> tuple[int, ...]:
        """Return the numbers of the page buffers that ``open`` needs whole."""
        ...

    def open(
        self, layout: Any, shape: PageShape, buffers: Mapping[int, Bytes], codecs: Codecs
    ) -> PageReader:
        """Validate the page and return its reader. Raises CorruptFileError."""
        ...
