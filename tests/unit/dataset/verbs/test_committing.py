"""What every verb shares: how it commits, and what it starts from."""

from __future__ import annotations

import lance_nb


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
