"""One module per arm of ``CompressiveEncoding``; only ``encodings.registry`` imports them all.

Gathering is the second thing some arms can do with mini-block chunks: fetch single values by chunk
and position, at a cost that does not depend on the size of the chunks. Only what is asked for is
checked, so gathered values equal decoded ones, but damage elsewhere in a chunk goes unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lance_nb._pb import encodings21
from lance_nb.encodings.base import Chunks, Codecs, DataBlock, Ints


@dataclass(frozen=True, slots=True)
class Wanted:
    """Single values: value ``position[i]`` of chunk ``chunk[i]``, in any order, with repeats.

    The lookup has checked that every chunk exists and has that many values.
    """

    chunk: Ints
    position: Ints


class GatherCodecs(Codecs, Protocol):
    """The lookup, for arms whose children gather as well."""

    def can_gather(self, encoding: encodings21.CompressiveEncoding) -> bool:
        """Tell whether single values can be fetched without decoding their chunks."""
        ...

    def gather(
        self,
        encoding: encodings21.CompressiveEncoding,
        chunks: Chunks,
        wanted: Wanted,
    ) -> DataBlock:
        """Fetch the wanted values, in the order of ``wanted``."""
        ...
