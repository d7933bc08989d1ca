"""UpdateBases."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import BASE_PATHS
from lance_nb.format.manifest import BasePath
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.update_bases import UpdateBases
from tests.support.versions import Versions


def test_bases_get_the_next_ids_from_one() -> None:
    versions = Versions(1)
    versions.apply(UpdateBases((BasePath(0, "/a"), BasePath(7, "/b"), BasePath(0, "/c"))))
    assert [one.id for one in versions.manifest.base_paths] == [1, 7, 8]
    assert versions.manifest.reader_feature_flags & BASE_PATHS
    assert versions.manifest.writer_feature_flags & BASE_PATHS


@pytest.mark.parametrize(
    "again", [BasePath(0, "/a"), BasePath(0, "/b", name="n"), BasePath(1, "/c")]
)
def test_a_base_that_is_there_is_refused(again: BasePath) -> None:
    versions = Versions(1)
    versions.apply(UpdateBases((BasePath(0, "/a", name="n"),)))
    with pytest.raises(InvalidInputError, match="already"):
        versions.apply(UpdateBases((again,)))


def test_only_the_same_base_conflicts() -> None:
    ours = UpdateBases((BasePath(1, "/a", name="n"),))
    clashes = [BasePath(1, "/b"), BasePath(0, "/b", name="n"), BasePath(0, "/a")]
    for one in clashes:
        assert check(ours, UpdateBases((one,))).verdict is Verdict.INCOMPATIBLE
    assert check(ours, UpdateBases((BasePath(2, "/b"),))).verdict is Verdict.COMPATIBLE
