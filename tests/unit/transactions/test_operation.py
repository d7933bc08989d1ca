"""Names and descriptions of operations."""

from __future__ import annotations

from typing import Any

import pytest

from lance_nb.errors import ArgumentError
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.operation import listed, operation_name
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
