"""Blob pages: payloads lie elsewhere in the data file, the page holds (position, size) pairs.

Not supported: reading them. A page of this layout is refused by name; the description of what it
holds stays available through ``inspect``.
Source: message BlobLayout of lance.encodings21.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_nb._pb import encodings21
from lance_nb.encodings.base import Bytes, Codecs, PageReader, PageShape
from lance_nb.errors import NotSupportedError


class BlobLayout:
    """The layout arm."""

    def index_buffers(self, layout: encodings21.BlobLayout, shape: PageShape) -> tuple[int, ...]:
        """None: the page cannot be opened."""
        return ()

    def open(
        self,
        layout: encodings21.BlobLayout,
        shape: PageShape,
        buffers: Mapping[int, Bytes],
        codecs: Codecs,
    ) -> PageReader:
        """Refuse. Raises NotSupportedError."""
        raise NotSupportedError(
            "blob pages cannot be read yet; leave the column out with columns=[...]"
        )
