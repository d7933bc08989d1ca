"""How much functions of filters may make: bounded before anything is allocated.

An operand may be a column, so what a dataset holds decides how long a text or list would become.

Limits: ``MADE_MAX`` characters or elements for the rows that are evaluated at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MADE_MAX = 1 << 27


def check_amounts(counts: npt.NDArray[np.int64], each: int, what: str) -> None:
    """Check the length of what each row becomes. Raises ArrowInvalid, a PredicateError then."""
    largest = int(counts.max(initial=0))
    if largest > each:
        raise pa.ArrowInvalid(f"{what} of {largest:,} is longer than allowed: at most {each:,}")
    total = int(counts.sum())
    if total > MADE_MAX:
        raise pa.ArrowInvalid(
            f"{what} for each of {counts.size:,} rows makes {total:,} in all, more than "
            f"{MADE_MAX:,}; make it shorter, or look at fewer rows (fragments=)"
        )
