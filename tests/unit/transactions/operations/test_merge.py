"""Merge."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.row_sequences import RowVersionSequence
from lance_nb.format.schema import Schema
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from tests.support.versions import SCHEMA, Versions, index

WIDER = Schema(
    (*SCHEMA.fields, *Schema.from_arrow(pa.schema([("d", pa.int8())]), first_id=3).fields)
)


def with_column(fragment: Fragment) -> Fragment:
    file = DataFile(f"d{fragment.id}.lance", (3,), (0,), 2, 2)
    return replace(fragment, files=(*fragment.files, file))


def moved(fragment: Fragment, field: int) -> Fragment:
    """Rewrite one field into a file of its own; the old column becomes a tombstone."""
    old = fragment.files[0]
    left = tuple(-2 if one == field else one for one in old.fields)
    file = DataFile(f"moved{fragment.id}.lance", (field,), (0,), 2, 2)
    return replace(fragment, files=(replace(old, fields=left), file))


def test_the_schema_and_the_fragments_are_those_handed_in() -> None:
    versions = Versions(2)
    versions.apply(Merge(tuple(with_column(one) for one in versions.manifest.fragments), WIDER))
    assert versions.manifest.schema.names == ["a", "b", "c", "d"]
    assert [len(one.files) for one in versions.manifest.fragments] == [2, 2]


def test_every_fragment_has_to_be_listed() -> None:
    versions = Versions(2)
    with pytest.raises(InvalidInputError, match="fragment 1 is not among its 1"):
        versions.apply(Merge((versions.fragment(0),), SCHEMA))


def test_schema_metadata_that_is_left_out_stays() -> None:
    versions = Versions(1)
    versions.apply(UpdateConfig(schema_metadata_updates=UpdateMap({"k": "v"})))
    versions.apply(Merge((versions.fragment(0),), SCHEMA))
    assert versions.manifest.schema.metadata == {"k": b"v"}
    versions.apply(Merge((versions.fragment(0),), replace(SCHEMA, metadata={"l": b"w"})))
    assert versions.manifest.schema.metadata == {"l": b"w"}


def test_rows_of_fragments_with_other_files_count_as_updated() -> None:
    versions = Versions(2, stable_row_ids=True)
    versions.apply(Merge((with_column(versions.fragment(0)), versions.fragment(1)), WIDER))
    updated = [
        RowVersionSequence.from_bytes(one.last_updated_at_versions.data).runs
        for one in versions.manifest.fragments
    ]
    assert updated == [((10, 2),), ((10, 1),)]


def test_an_index_on_a_field_that_moved_leaves_the_fragment() -> None:
    versions = Versions(2)
    versions.apply(CreateIndex((index("a", 0, covers=(0, 1)), index("b", 1, covers=(0, 1)))))
    versions.apply(Merge((moved(versions.fragment(0), 0), versions.fragment(1)), SCHEMA))
    assert versions.covered("a") == [1]
    assert versions.covered("b") == [0, 1]


def test_a_file_of_nothing_but_tombstones_is_left_out() -> None:
    versions = Versions(1)
    fragment = versions.fragment(0)
    for field in (0, 1, 2):
        fragment = moved(fragment, field) if field == 0 else fragment
    dead = replace(fragment.files[0], fields=(-2, -2, -2))
    whole = DataFile("whole.lance", (0, 1, 2), (0, 1, 2), 2, 2)
    versions.apply(Merge((replace(fragment, files=(dead, whole)),), SCHEMA))
    assert [one.path for one in versions.fragment(0).files] == ["whole.lance"]


def test_an_index_on_a_field_that_is_gone_is_dropped() -> None:
    versions = Versions(1)
    versions.apply(CreateIndex((index("c", 2),)))
    versions.apply(Merge((versions.fragment(0),), Schema(SCHEMA.fields[:2])))
    assert versions.newest.indices == ()


def test_rows_neither_come_nor_go_where_their_number_is_known() -> None:
    versions = Versions(1)
    fragment = versions.fragment(0)
    with pytest.raises(InvalidInputError, match="has 10 of them and is to have 9"):
        versions.apply(Merge((replace(fragment, physical_rows=9),), SCHEMA))
    versions.apply(Merge((replace(fragment, physical_rows=0),), SCHEMA))  # not recorded
    versions.apply(Merge((fragment,), SCHEMA))
