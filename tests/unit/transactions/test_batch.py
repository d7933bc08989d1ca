from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.transactions.batch import commit_batch, merge_appends
from lance_nb.transactions.operations.restore import Restore
from tests.support.committing import Table, file_names


def test_several_appends_become_one_version():
    table = Table()
    table.create()
    table.append(1, "between")
    parts = [table.appending(2, "a"), table.appending(1, "b"), table.appending(2, "c")]
    made = commit_batch(table.place, parts, table.options(message="three"))
    assert made.committed.version == 3
    assert file_names(made.committed)[1:] == ["between.lance", "a.lance", "b.lance", "c.lance"]
    assert made.merged.read_version == 1
    assert made.merged.message == "three"
    assert made.merged.uuid not in [one.uuid for one in parts]


def test_properties_are_joined():
    table = Table()
    one = replace(table.appending(1), transaction_properties={"a": "1", "b": "1"})
    two = replace(table.appending(1), transaction_properties={"b": "2"})
    assert merge_appends([one, two]).properties == {"a": "1", "b": "2"}


def test_nothing_to_commit_is_told():
    with pytest.raises(InvalidInputError, match="no transactions"):
        commit_batch(Table().place, [])


def test_only_appends_can_be_merged():
    table = Table()
    table.create()
    with pytest.raises(NotSupportedError, match="Restore"):
        commit_batch(table.place, [table.appending(1), table.transaction(1, Restore(1))])


def test_appends_with_fields_of_a_newer_release_are_refused():
    table = Table()
    one, newer = table.appending(1), b"\xf8\x07\x01"
    for changed in (
        replace(one, unknown=newer),
        replace(one, operation=replace(one.operation, unknown=newer)),
    ):
        with pytest.raises(NotSupportedError, match="only appends that this release knows"):
            merge_appends([one, changed])


def test_the_same_batch_committed_again_is_committed_once():
    table = Table()
    table.create()
    parts = [table.appending(1, "a"), table.appending(1, "b")]
    first, again = (commit_batch(table.place, parts, table.options()) for _ in range(2))
    assert first.committed.version == again.committed.version == 2
    other = commit_batch(table.place, parts[::-1], table.options())
    assert other.committed.version == 3
