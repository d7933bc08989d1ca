"""Append."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import NotSupportedError
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from tests.support.versions import Versions, new_fragment


def test_new_fragments_get_ids_behind_the_highest_ever_used() -> None:
    versions = Versions(3)
    versions.apply(Delete(deleted_fragment_ids=(2,)))
    versions.apply(Append((new_fragment("x"), new_fragment("y"))))
    assert versions.fragment_ids == [0, 1, 3, 4]
    assert versions.manifest.max_fragment_id == 4


def test_an_id_that_a_fragment_brings_is_not_believed() -> None:
    versions = Versions(3)
    versions.apply(Append((versions.fragment(1),)))
    assert versions.fragment_ids == [0, 1, 2, 3]


def test_new_rows_get_the_next_row_ids_and_are_of_this_version() -> None:
    versions = Versions(2, stable_row_ids=True)
    versions.apply(Append((new_fragment("x", 5),)))
    added = versions.fragment(2)
    assert RowIdSegments.from_bytes(added.row_ids.data).to_numpy().tolist() == list(range(20, 25))
    for sequence in (added.created_at_versions, added.last_updated_at_versions):
        assert RowVersionSequence.from_bytes(sequence.data).runs == ((5, 2),)
    assert versions.manifest.next_row_id == 25


def test_fragments_that_are_there_are_not_decoded() -> None:
    versions = Versions(2)
    old = versions.manifest.fragments
    old._cache.clear()
    old._counts = None
    built = versions.apply(Append((new_fragment("x"),)))
    assert old._cache == {}
    assert old._counts is None
    assert built.only_appended


def test_a_manifest_of_a_newer_writer_is_not_written_on() -> None:
    versions = Versions(1)
    newer = replace(versions.newest, manifest=replace(versions.manifest, unknown=b"\xba\x3e\x00"))
    versions.built[1] = newer
    with pytest.raises(NotSupportedError, match="newer lance_nb"):
        versions.apply(Append((new_fragment("x"),)))
