"""Delta: rows by the versions that created and updated them, and what was deleted."""

from __future__ import annotations

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, VersionNotFoundError


@pytest.fixture
def changed(make, rows):
    """Ten rows; 2 three of them again with other ids, 3 an update, 4 a deletion."""
    ds = make(enable_stable_row_ids=True)
    more = rows.slice(0, 3).set_column(0, "id", [[100, 101, 102]])
    ds = lance_nb.write_dataset(more, ds.uri, mode="append")
    ds.update({"name": "'new'"}, where="id in (2, 100)")
    ds.delete("id in (3, 101)")
    return lance_nb.dataset(ds.uri)


def _ids(reader) -> list[int]:
    return sorted(reader.read_all().column("id").to_pylist())


def test_delta_tells_what_came_and_changed_and_went(changed) -> None:
    delta = changed.delta(1)

    assert (delta.begin_version, delta.end_version) == (1, 4)
    assert _ids(delta.get_inserted_rows()) == [100, 102]
    assert _ids(delta.get_updated_rows()) == [2]
    assert delta.get_deleted_row_ids().read_all().column("_rowid").to_pylist() == [3]
    assert delta.get_deleted_rows().read_all().to_pylist() == [{"_rowid": 3, "id": 3, "name": "n3"}]
    assert [type(one.operation).__name__ for one in delta.list_transactions()] == [
        "Append", "Update", "Delete",
    ]  # fmt: skip


def test_a_range_has_an_open_begin(changed) -> None:
    delta = changed.delta(begin_version=2, end_version=3)

    assert _ids(delta.get_updated_rows()) == [2, 100]
    assert changed.delta(begin_version=0, end_version=2).get_deleted_rows().read_all().num_rows == 0
    assert lance_nb.DatasetDelta is type(delta)


@pytest.mark.parametrize(
    "versions", [{}, {"begin_version": 1}, {"end_version": 1}, {"compared_against": -1}], ids=str
)
def test_versions_that_say_nothing_are_refused(changed, versions) -> None:
    with pytest.raises(InvalidInputError):
        changed.delta(**versions)


def test_deleted_rows_need_row_ids_and_an_order(make, changed) -> None:
    with pytest.raises(InvalidInputError, match="newer"):
        changed.delta(begin_version=3, end_version=2).get_deleted_row_ids()
    with pytest.raises(VersionNotFoundError):
        changed.delta(begin_version=1, end_version=9).get_deleted_row_ids()
    plain = lance_nb.write_dataset(changed.to_table(), "memory://verbs/plain-delta.lance")
    with pytest.raises(InvalidInputError, match="stable row ids"):
        plain.delta(1).get_deleted_row_ids()
