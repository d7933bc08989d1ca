"""Metadata of fields, and the keys of a schema that follow from it."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema
from lance_nb.transactions.field_metadata import (
    PRIMARY_KEY,
    PRIMARY_KEY_POSITION,
    with_field_metadata,
)
from tests.support.versions import SCHEMA


def changed(schema: Schema, field: int, **metadata: str) -> Schema:
    return with_field_metadata(schema, {field: lambda before: {**before, **metadata}})


def test_only_the_named_field_changes() -> None:
    after = changed(SCHEMA, 1, k="v")
    assert [dict(one.metadata) for one in after] == [{}, {"k": b"v"}, {}]


@pytest.mark.parametrize(
    ("metadata", "position"),
    [({PRIMARY_KEY: "true"}, 0), ({PRIMARY_KEY: "Yes"}, 0), ({PRIMARY_KEY_POSITION: "2"}, 2)],
)
def test_a_primary_key_is_set_by_metadata(metadata: dict[str, str], position: int) -> None:
    keys = changed(SCHEMA, 0, **metadata).field_by_id(0).keys
    assert (keys.primary, keys.primary_position) == (True, position)


def test_a_clustering_key_is_not_set_by_metadata() -> None:
    key = "lance-schema:unenforced-clustering-key:position"
    assert not changed(SCHEMA, 0, **{key: "1"}).field_by_id(0).keys.clustering


@pytest.mark.parametrize(
    "metadata",
    [{PRIMARY_KEY: "no"}, {PRIMARY_KEY_POSITION: "x"}],
)
def test_metadata_that_sets_no_key_is_refused(metadata: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match="sets no key"):
        changed(SCHEMA, 0, **metadata)


def test_a_key_is_never_changed() -> None:
    keyed = changed(SCHEMA, 0, **{PRIMARY_KEY: "true"})
    assert changed(keyed, 0, k="v").field_by_id(0).keys.primary
    with pytest.raises(InvalidInputError, match="cannot be changed"):
        changed(keyed, 1, **{PRIMARY_KEY: "true"})
    with pytest.raises(InvalidInputError, match="cannot be changed"):
        with_field_metadata(keyed, {0: lambda _: {}})
