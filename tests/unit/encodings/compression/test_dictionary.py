"""Dictionary as a compressive encoding is refused."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21
from lance_nb.encodings.base import FixedWidth
from lance_nb.encodings.registry import codecs
from lance_nb.errors import NotSupportedError
from tests.property.encodings.reference_encoders import Encoding, chunks_of

ENCODING = Encoding(dictionary=encodings21.Dictionary(num_dictionary_items=1))


def test_every_role_is_refused_by_name() -> None:
    chunks = chunks_of([[b""]], [0])
    values = FixedWidth(8, 0, np.zeros(0, np.uint8))
    for call in (
        lambda: codecs.num_buffers(ENCODING),
        lambda: codecs.decode_chunks(ENCODING, chunks),
        lambda: codecs.decode_blocks(ENCODING, chunks),
        lambda: codecs.decode_values(ENCODING, values),
    ):
        with pytest.raises(NotSupportedError, match="'dictionary'"):
            call()
