"""

What every verb shares: how it commits, and what it starts from.
"""

from __future__ import annotations

import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError


def test_config_is_set_removed_and_replaced(make, uri):
    made = make()
    assert made.update_config({"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert made.update_config({"b": None, "c": "3"}) == {"a": "1", "c": "3"}
    made.delete_config_keys(["a", "never-set"])
    assert made.config() == {"c": "3"}
    assert made.update_config({"z": "9"}, replace=True) == {"z": "9"}
    assert lance_nb.dataset(uri).config() == {"z": "9"}
    assert made.version == 5


def test_table_metadata_is_its_own_map(make, uri):
    made = make()
    assert made.update_metadata({"owner": "ada"}) == {"owner": "ada"}
    assert lance_nb.dataset(uri).metadata == {"owner": "ada"}
    assert made.config() == {}


def test_schema_metadata_is_seen_in_the_schema(make):
    made = make()
    assert made.update_schema_metadata({"k": "v"}) == {"k": "v"}
    assert made.schema.metadata == {b"k": b"v"}
    made.replace_schema_metadata({"other": "w"})
    assert made.schema.metadata == {b"other": b"w"}


def test_field_metadata_goes_to_the_field_that_is_named(make):
    made = make()
    made.update_field_metadata({"id": {"unit": "none"}, "name": {"lang": "en"}})
    assert made.schema.field("id").metadata == {b"unit": b"none"}
    made.replace_field_metadata("id", {"x": "y"})
    assert made.schema.field("id").metadata == {b"x": b"y"}
    assert made.schema.field("name").metadata == {b"lang": b"en"}


def test_an_unknown_field_changes_nothing(make, files):
    made = make()
    before = files()
    with pytest.raises(ColumnNotFoundError, match="'nope'"):
        made.update_field_metadata({"nope": {"a": "b"}})
    assert files() == before


@pytest.mark.parametrize("values", [{"a": 1}, {1: "a"}, {"a": b"x"}])
def test_settings_are_text(make, values):
    with pytest.raises(InvalidInputError, match="text"):
        make().update_config(values)


def test_different_keys_of_two_handles_both_stay(make, uri):
    one = make()
    other = lance_nb.dataset(uri)
    one.update_config({"a": "1"})
    assert other.update_config({"b": "2"}) == {"a": "1", "b": "2"}


def test_a_restore_takes_the_place_of_the_newest_version(make, rows, uri):
    made = make()
    for number in range(3):
        made.insert(rows.slice(number, 1))
    lance_nb.dataset(uri, version=2).restore()
    assert lance_nb.dataset(uri).read_transaction(5).read_version == 4
    assert lance_nb.dataset(uri).count_rows() == 11


def test_a_restore_needs_no_version_that_a_clean_up_took(make, rows, uri):
    made = make()
    made.tags.create("first", 1)
    for number in range(3):
        made.insert(rows.slice(number, 1))
    made.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert made.version_numbers() == [1, 4]
    lance_nb.dataset(uri, version="first").restore()
    assert lance_nb.dataset(uri).to_table().equals(rows)
