"""Footprints."""

from __future__ import annotations

import dataclasses

from lance_nb.transactions.footprint import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    Footprint,
    Settings,
)


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
