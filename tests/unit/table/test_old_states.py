"""``verify`` and ``validate`` name the states that old releases left."""

from __future__ import annotations

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from tests.unit.dataset.test_old_releases import PATHS

FOUND = {
    "pylance_0_8_0/wrong_counts": "counts 90 rows and 10 deleted ones in fragment 0, which has 100",
    "pylance_0_10_5/ids_of_dropped_columns": "field 2 twice, as releases up to 0.10.5",
    "pylance_0_10_5/dropped_columns": "holds no column of the schema",
    "pylance_0_16_0/fragment_id_twice": "two fragments have the id 1",
    "pylance_0_16_0/mixed_files": "data files of version 0.1 and of later ones",
    "pylance_0_8_0/compacted": "stands behind fragment",
    "pylance_0_21_0/overlapping_segments": "two segments of index 'v_idx' cover fragment 0",
    "pylance_0_7_5/vector_index": "index 'v_idx' does not say which fragments it covers",
}
WHOLE = ("pylance_0_7_5/deletions", "pylance_0_10_5/dictionaries", "pylance_0_21_0/storage_class")
VALID = (  # for pylance, too
    "pylance_0_7_5/vector_index",
    "pylance_0_16_0/mixed_files",
)


@pytest.mark.parametrize("name", FOUND)
def test_the_state_is_named(name: str) -> None:
    dataset = lance_nb.dataset(PATHS[name])
    problems = [one.message for one in dataset.verify().findings]
    assert any(FOUND[name] in one for one in problems), problems
    if name in VALID:
        dataset.validate()
    else:
        with pytest.raises(CorruptFileError):
            dataset.validate()


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_only_old_is_whole(name: str) -> None:
    dataset = lance_nb.dataset(PATHS[name])
    assert dataset.verify().ok, dataset.verify()
    dataset.validate()
