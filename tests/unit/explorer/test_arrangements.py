from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.code_lines import Python
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.arrangements import MAX_KEPT, Arrangements
from lance_nb.explorer.models.row_query import FilteredRows, NearestQuery, SortedRows

NO_CODE = Python("None")


def ordered() -> SortedRows:
    return SortedRows(np.zeros(1, np.uint64), 1)


def test_an_order_belongs_to_its_version() -> None:
    kept, one = Arrangements(), ordered()
    key = kept.keep((None, 1), one)
    assert kept.at((None, 1), key) is one
    for place, wrong in [
        ((None, 2), key),
        ((None, 1), "o99"),
        ((None, 1), 5),
        ((None, 1), "x" * 99),
    ]:
        with pytest.raises(InvalidInputError):
            kept.at(place, wrong)


def test_only_the_newest_of_each_are_kept() -> None:
    kept = Arrangements()
    like = kept.keep_likeness(NearestQuery("v", pa.scalar([1.0]), NO_CODE))
    passing = kept.keep((None, 1), FilteredRows("x > 1", (), np.zeros(0, np.int64)))
    keys = [kept.keep((None, 1), ordered()) for _ in range(MAX_KEPT + 1)]
    with pytest.raises(InvalidInputError, match="sort them again"):
        kept.at((None, 1), keys[0])
    assert kept.at((None, 1), keys[1])
    assert kept.likeness(like).column == "v"
    assert isinstance(kept.at((None, 1), passing), FilteredRows)
    with pytest.raises(InvalidInputError, match="choose its row again"):
        kept.likeness("v99")


def test_a_filter_goes_on_without_what_was_forgotten() -> None:
    assert Arrangements().at((None, 1), "p7") is None
