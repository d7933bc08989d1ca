"""UpdateConfig, in the form of today and the deprecated one."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import TABLE_CONFIG
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.update_config import (
    DeprecatedUpdates,
    UpdateConfig,
    UpdateMap,
)
from tests.support.versions import Versions


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
