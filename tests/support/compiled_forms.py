"""Run a loop compiled, or in its numpy form."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum

from lance_nb.encodings.kernels import compiled

_BUILT = compiled.loops


class Form(Enum):
    """Which form of a loop runs."""

    COMPILED = "compiled where the extension was built"
    NUMPY = "numpy"


@contextlib.contextmanager
def forced(form: Form) -> Iterator[None]:
    """Use ``form`` inside a ``with`` block of one thread."""
    before = compiled.loops
    compiled.loops = _BUILT if form is Form.COMPILED else None
    try:
        yield
    finally:
        compiled.loops = before
