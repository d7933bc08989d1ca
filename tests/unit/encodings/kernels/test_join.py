"""Joining byte strings row by row."""

from __future__ import annotations

import numpy as np

from lance_nb.encodings.kernels.join import join_rows


def column(*values: bytes) -> tuple[np.ndarray, np.ndarray]:
    ends = np.concatenate(([0], np.cumsum([len(value) for value in values]))).astype(np.int64)
    return ends, np.frombuffer(b"".join(values) or b"\0", np.uint8)


def test_rows_are_joined_in_order() -> None:
    columns = [column(b"a", b"", b"ccc"), column(b"1", b"22", b""), column(b"", b"\0", b"x")]
    assert join_rows(columns).tobytes() == b"a122\0cccx"


def test_nothing_joins_to_nothing() -> None:
    assert join_rows([column(b"", b"")]).size == 0
