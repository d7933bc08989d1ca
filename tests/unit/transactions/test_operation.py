"""Operations as values, and the footprints that conflict rules compare."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from lance_nb.errors import ArgumentError
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.operation import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    Footprint,
    Settings,
    listed,
    operation_name,
)
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.restore import Restore


def test_names_are_those_that_people_see() -> None:
    assert operation_name("update_mem_wal_state") == "UpdateMemWalState"


def test_the_description_is_that_of_the_history() -> None:
    assert Restore(7).describe() == "restore version 7"


def test_parts_that_pylance_does_not_have_are_shown_where_they_are_set() -> None:
    assert repr(Restore(7)) == "LanceOperation.Restore(version=7)"
    assert repr(Restore(7, unknown=b"x")) == "LanceOperation.Restore(version=7, unknown=b'x')"
    assert repr(Delete(predicate="a > 1")).startswith(
        "LanceOperation.Delete(updated_fragments=[], deleted_fragment_ids=[], predicate='a > 1'"
    )


@pytest.mark.parametrize("value", [[1, 2], (1, 2), {1: 0, 2: 0}, iter([1, 2])])
def test_any_collection_is_a_list(value: Any) -> None:
    assert listed(value, int, "numbers") == [1, 2]


def test_a_single_value_is_a_list_of_one() -> None:
    assert listed(3, int, "numbers") == [3]


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ([1, "2"], int, "numbers must be a list of int, not of str"),
        ([1], Fragment, "numbers must be a list of FragmentMetadata, not of int"),
        (None, IndexMetadata, "numbers must be a list of IndexMetadata, not of NoneType"),
    ],
)
def test_values_of_another_type_are_named_as_users_know_them(
    value: Any, kind: type[Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        listed(value, kind, "numbers")


def test_touched_fragments_are_the_changed_and_the_removed() -> None:
    footprint = Footprint(frozenset({1, 2}), frozenset({3}))
    assert footprint.touched == {1, 2, 3}


def test_maps_are_those_with_changed_keys_and_those_replaced() -> None:
    settings = Settings(frozenset({(CONFIG, -1, "k")}), frozenset({(SCHEMA_METADATA, -1)}))
    assert settings.maps == {(CONFIG, -1), (SCHEMA_METADATA, -1)}
    assert settings.touches_schema
    assert Settings(frozenset({(FIELD_METADATA, 3, "k")})).touches_schema
    assert not Settings(frozenset({(CONFIG, -1, "k")})).touches_schema


def test_a_footprint_touches_nothing_that_it_does_not_name() -> None:
    empty = Footprint()
    assert empty.touched == frozenset()
    told = [getattr(empty, one.name) for one in dataclasses.fields(empty)]
    assert [one for one in told if one] == [Settings()]
    assert not empty.settings.maps
