"""Cut two long texts to where they differ, so that a change far inside of them can be shown.

A view shows the beginning of a value. Of two versions of a long text the beginnings are often the
same, so both are cut to begin shortly before the first difference, with an ellipsis in front. What
follows is cut by the view, as of any long value.

Limits: ``CONTEXT_CHARS`` bytes, about, stand before the first difference. The bytes are compared
without making Python objects of them; 1 MB takes about a millisecond.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.explorer import text

CONTEXT_CHARS = 48
_CONTINUES = 0b1000_0000  # of a byte of UTF-8 within a character, the two upper bits


def excerpts(
    old: pa.Array, new: pa.Array, differs: npt.NDArray[np.bool_], chars: int
) -> tuple[pa.Array, pa.Array]:
    """Cut pairs of texts that do not fit into ``chars`` characters; others stay as they are.

    ``differs`` says of each row whether its two values are to be compared.
    """
    kinds = old.type, new.type
    if not all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds):
        return old, new
    longest = [pc.fill_null(pc.binary_length(column), 0) for column in (old, new)]
    is_long = np.maximum(*(sizes.to_numpy(zero_copy_only=False) for sizes in longest)) > chars
    valid = old.is_valid().to_numpy(zero_copy_only=False)
    valid &= new.is_valid().to_numpy(zero_copy_only=False)
    chosen = differs & is_long & valid
    if not chosen.any():
        return old, new
    pairs = [
        differing_excerpts(old[row].as_buffer(), new[row].as_buffer(), chars)
        for row in np.flatnonzero(chosen).tolist()
    ]
    mask = pa.array(chosen)
    before, after = (
        pc.replace_with_mask(column, mask, pa.array(values, column.type))
        for column, values in zip((old, new), zip(*pairs, strict=True), strict=True)
    )
    return before, after


def differing_excerpts(old: pa.Buffer, new: pa.Buffer, chars: int) -> tuple[str, str]:
    """Return some more than ``chars`` characters of each text from where they begin to differ."""
    before, after = (np.frombuffer(buffer, np.uint8) for buffer in (old, new))
    shorter = min(len(before), len(after))
    unequal = before[:shorter] != after[:shorter]
    same = int(unequal.argmax()) if unequal.any() else shorter
    start = _start(bytes(before[max(0, same - 2 * CONTEXT_CHARS) : same]), same)
    return _from(before, start, chars), _from(after, start, chars)


def _start(common: bytes, same: int) -> int:
    """Return where an excerpt begins: at a word if there is one, else at a character."""
    if same <= 2 * CONTEXT_CHARS:
        return 0
    context = common[-CONTEXT_CHARS:]
    space = context.find(b" ")
    if 0 <= space < len(context) // 2:
        return same - len(context) + space + 1
    position = 0
    while position < len(context) and context[position] & 0b1100_0000 == _CONTINUES:
        position += 1
    return same - len(context) + position


def _from(raw: npt.NDArray[np.uint8], start: int, chars: int) -> str:
    shown = bytes(raw[start : start + 4 * (chars + 1)]).decode("utf-8", "ignore")
    return f"{text.ELLIPSIS if start else ''}{shown}"
