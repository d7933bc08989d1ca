"""Datasets of old releases read as pylance 14.0.2 reads them, where it still does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from tests.support.old_releases import PATHS
from tests.support.reading import check_table
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

# What pylance 14.0.2 refuses and lance_nb reads: fragments of files of 2.0 and 0.1 together, 2.2
# files of the releases before 2.2 was settled, columns that releases of 2023 added, two fragments
# of one id.
REFUSED = {
    "pylance_0_12_3/history_2_0",
    "pylance_0_4_21/history_legacy",
    "pylance_0_5_10/history_legacy",
    "pylance_0_16_0/fragment_id_twice_in_one_version",
    "pylance_1_0_4/types_2_2",
    "pylance_1_0_4/many_2_2",
}
# Compaction lost row ids here; 0.26.1 itself could not read the result.
DAMAGED = {("pylance_0_26_1/stable_ids_2_0", 13), ("pylance_0_26_1/stable_ids_2_0", 14)}


@pytest.mark.parametrize("name", PATHS)
def test_every_version_reads_equal(name: str) -> None:
    lance = require_pylance()
    path = PATHS[name]
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    if name != "pylance_0_12_3/history_2_0":  # reads every manifest, one of which it refuses
        assert ours.versions() == theirs.versions()
    assert ours.tags.list() == theirs.tags.list()
    refused = 0
    for version in ours.version_numbers():
        if (name, version) in DAMAGED:
            with pytest.raises(CorruptFileError, match="row ids"):
                lance_nb.dataset(path, version=version).to_table(with_row_id=True)
            continue
        wanted = _read(lance, path, version)
        if wanted is None:
            refused += 1
            continue
        one = lance_nb.dataset(path, version=version)
        check_table(one.to_table(with_row_id=True, with_row_address=True), wanted, (name, version))
        _check_metadata(one, lance.dataset(path, version=version))
    assert bool(refused) == (name in REFUSED)


def _read(lance: Any, path: Path, version: int) -> Any:
    try:
        return lance.dataset(path, version=version).to_table(
            with_row_id=True, with_row_address=True
        )
    except (OSError, ValueError):
        return None


def _check_metadata(ours: Any, theirs: Any) -> None:
    assert ours.count_rows() == theirs.count_rows()
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.data_storage_version == theirs.data_storage_version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            theirs_indices = theirs.list_indices()
        except RuntimeError as error:  # for releases up to 0.7
            assert "requires physical row count" in str(error)  # noqa: PT017
            theirs_indices = ours.list_indices()
    known = [(one["name"], one["fields"], set(one["fragment_ids"])) for one in theirs_indices]
    found = [(one["name"], one["fields"], one["fragment_ids"]) for one in ours.list_indices()]
    assert sorted(map(str, found)) == sorted(map(str, known))
    mine, other = ours.get_fragments(), theirs.get_fragments()
    assert [one.fragment_id for one in mine] == [one.fragment_id for one in other]
    assert [one.physical_rows for one in mine] == [one.physical_rows for one in other]
    assert [one.num_deletions for one in mine] == [one.num_deletions for one in other]
