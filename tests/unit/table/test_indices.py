from __future__ import annotations

import pytest

from lance_nb.table.indices import read_indices
from tests.golden.opening import WatchedStore, snapshot_of


def test_a_version_before_the_index_has_none(at):
    assert read_indices(at(11)) == ()


@pytest.mark.parametrize("version", [12, 13, 14])
def test_an_index_is_carried_from_version_to_version(at, version):
    (index,) = read_indices(at(version))
    assert (index.name, index.kind, index.fields) == ("id_idx", "BTree", (0,))
    assert index.dataset_version == 11
    assert list(index.fragment_ids()) == [4]


def test_an_index_section_before_the_tail_is_read_by_itself(at, history, monkeypatch):
    whole = read_indices(at(14))
    monkeypatch.setattr("lance_nb.table.versions.TAIL_BYTES", 64)
    store = WatchedStore(history)
    assert read_indices(snapshot_of(store, 14)) == whole
    assert sum(store.reads.values()) <= 4
