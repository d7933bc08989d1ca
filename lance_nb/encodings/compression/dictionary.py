"""Dictionary as a compressive encoding: refused, because no release has ever written it.

The dictionaries that pages do have live in the mini-block layout itself.
Layout: by its message: indices and items, each with an encoding of their own.
Not supported: every role.
Source: message ``Dictionary`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from lance_nb._pb import encodings21
from lance_nb.encodings.base import Chunks, Codecs, DataBlock, FixedWidth, VariableWidth
from lance_nb.encodings.codec import Codec
from lance_nb.errors import NotSupportedError

_REFUSAL = (
    "a page uses 'dictionary' as its compressive encoding, which no known release of Lance writes "
    "(dictionaries belong to the page layout); lance_nb does not read it"
)


class Dictionary(Codec):
    """Refused in every role."""

    def num_buffers(self, encoding: encodings21.Dictionary, codecs: Codecs) -> int:
        """Raise NotSupportedError."""
        raise NotSupportedError(_REFUSAL)

    def decode_chunks(
        self, encoding: encodings21.Dictionary, _chunks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Raise NotSupportedError."""
        raise NotSupportedError(_REFUSAL)

    def decode_blocks(
        self, encoding: encodings21.Dictionary, _blocks: Chunks, codecs: Codecs
    ) -> DataBlock:
        """Raise NotSupportedError."""
        raise NotSupportedError(_REFUSAL)

    def decode_values(
        self,
        encoding: encodings21.Dictionary,
        _values: FixedWidth | VariableWidth,
        codecs: Codecs,
    ) -> DataBlock:
        """Raise NotSupportedError."""
        raise NotSupportedError(_REFUSAL)
