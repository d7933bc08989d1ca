"""ReserveFragments."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from tests.support.versions import Versions, new_fragment


def test_ids_are_set_aside() -> None:
    versions = Versions(2)
    versions.apply(ReserveFragments(3))
    assert versions.fragment_ids == [0, 1]
    assert versions.manifest.max_fragment_id == 4
    versions.apply(Append((new_fragment("x"),)))
    assert versions.fragment_ids == [0, 1, 5]


def test_without_any_fragment_the_first_id_set_aside_is_one() -> None:
    versions = Versions(0)
    versions.apply(ReserveFragments(2))
    assert versions.manifest.max_fragment_id == 2


def test_ids_fit_32_bits() -> None:
    with pytest.raises(InvalidInputError, match="32 bits"):
        Versions(2).apply(ReserveFragments(2**32 - 1))
