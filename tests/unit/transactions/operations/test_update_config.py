"""UpdateConfig: settings, metadata and the primary key."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import TABLE_CONFIG
from lance_nb.format.schema import Schema
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.update_config import (
    PRIMARY_KEY,
    PRIMARY_KEY_POSITION,
    DeprecatedUpdates,
    UpdateConfig,
    UpdateMap,
    with_field_metadata,
)
from tests.support.versions import SCHEMA, Versions


def test_entries_are_set_deleted_and_maps_replaced() -> None:
    versions = Versions(1)
    versions.apply(UpdateConfig(UpdateMap({"a": "1", "b": "2"}), UpdateMap({"t": "1"})))
    versions.apply(
        UpdateConfig(UpdateMap({"a": None, "c": "3"}), UpdateMap({"u": "2"}, replace=True))
    )
    assert versions.manifest.config == {"b": "2", "c": "3"}
    assert versions.manifest.table_metadata == {"u": "2"}


def test_a_config_is_announced_to_writers_only() -> None:
    versions = Versions(1)
    versions.apply(UpdateConfig(UpdateMap({"a": "1"})))
    assert versions.manifest.writer_feature_flags & TABLE_CONFIG
    assert not versions.manifest.reader_feature_flags & TABLE_CONFIG
    versions.apply(UpdateConfig(UpdateMap({"a": None})))
    assert not versions.manifest.writer_feature_flags & TABLE_CONFIG


def test_metadata_of_schema_and_fields() -> None:
    versions = Versions(1)
    fields = {1: UpdateMap({"f": "x"})}
    versions.apply(UpdateConfig(None, None, UpdateMap({"s": "y"}), fields))
    schema = versions.manifest.schema
    assert schema.metadata == {"s": b"y"}
    assert [dict(one.metadata) for one in schema] == [{}, {"f": b"x"}, {}]


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no field 9"):
        Versions(1).apply(UpdateConfig(field_metadata_updates={9: UpdateMap({"a": "b"})}))


def test_the_deprecated_form_means_the_same() -> None:
    versions = Versions(1)
    versions.apply(UpdateConfig(UpdateMap({"gone": "1"})))
    old = DeprecatedUpdates({"k": "v"}, ("gone",), {"s": "1"}, {0: {"f": "2"}})
    versions.apply(UpdateConfig(deprecated=old))
    assert versions.manifest.config == {"k": "v"}
    assert versions.manifest.schema.metadata == {"s": b"1"}
    assert versions.manifest.schema.field_by_id(0).metadata == {"f": b"2"}


def settings(**maps: dict[str, str]) -> UpdateConfig:
    return UpdateConfig(**{name: UpdateMap(one) for name, one in maps.items()})


def test_only_the_same_key_conflicts_in_config_and_table_metadata() -> None:
    for name in ("config_updates", "table_metadata_updates"):
        ours = settings(**{name: {"k": "1"}})
        assert check(ours, settings(**{name: {"k": "2"}})).verdict is Verdict.INCOMPATIBLE
        assert check(ours, settings(**{name: {"l": "2"}})).verdict is Verdict.COMPATIBLE
        whole = UpdateConfig(**{name: UpdateMap({"l": "2"}, replace=True)})
        assert check(ours, whole).verdict is Verdict.INCOMPATIBLE


def test_any_two_changes_of_the_same_schema_or_field_metadata_conflict() -> None:
    schema = settings(schema_metadata_updates={"k": "1"})
    other = settings(schema_metadata_updates={"l": "1"})
    assert check(schema, other).verdict is Verdict.INCOMPATIBLE
    fields = [UpdateConfig(field_metadata_updates={one: UpdateMap({"k": "1"})}) for one in (0, 1)]
    assert check(fields[0], fields[1]).verdict is Verdict.COMPATIBLE
    assert check(fields[0], fields[0]).verdict is Verdict.INCOMPATIBLE
    assert check(schema, fields[0]).verdict is Verdict.COMPATIBLE


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
