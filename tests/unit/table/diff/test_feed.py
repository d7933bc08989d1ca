"""The change feed: what every version did, in order."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, VersionNotFoundError


def _events(reader) -> list[tuple]:
    names = ("_commit_version", "_change_type", "id")
    return [tuple(row[name] for name in names) for row in reader.read_all().to_pylist()]


def test_every_change_is_reported_in_its_version(past) -> None:
    feed = past().changes(1)

    assert _events(feed) == [
        *((2, "insert", number) for number in range(10, 15)),
        (3, "update_preimage", 1), (3, "update_preimage", 7),
        (3, "update_postimage", 1), (3, "update_postimage", 7),
        (4, "delete", 3),
    ]  # fmt: skip


def test_columns_have_the_names_of_the_newest_version(past) -> None:
    feed = past().changes(2, 3, columns=["v"]).read_all()
    renamed = past().changes(2, columns=["u", "w"]).read_all()

    assert feed.column("v").to_pylist() == [1.0, 7.0, 101.0, 107.0]
    assert renamed.schema.names[-3:] == ["_rowid", "u", "w"]
    assert renamed.column("u").to_pylist() == [1.0, 7.0, 101.0, 107.0, 3.0]
    assert renamed.column("w").null_count == 5


def test_each_row_tells_when_its_version_was_made(past) -> None:
    ds = past(steps=3)
    feed = ds.changes(1).read_all()

    times = dict(zip(feed["_commit_version"].to_pylist(), feed["_commit_timestamp"], strict=True))
    assert times[2].as_py() == ds.version_info(2).timestamp


def test_a_branch_tells_what_happened_before_its_fork(past) -> None:
    ds = past(steps=4)
    ds.create_branch("dev", 4)
    lance_nb.dataset(ds.uri, ("dev", None)).delete("id = 0")
    dev = lance_nb.dataset(ds.uri, ("dev", None))

    assert _events(dev.changes("main:3")) == [(4, "delete", 3), (5, "delete", 0)]


def test_without_row_ids_a_key_is_needed(past) -> None:
    ds = past(stable=False, steps=4)

    with pytest.raises(InvalidInputError, match="which row is which"):
        ds.changes(1)
    assert _events(ds.changes(2, key="id")) == _events(past(steps=4).changes(2))
    by_address = _events(ds.changes(2, 3, key="_rowaddr"))
    assert [one[1] for one in by_address] == ["delete", "delete", "insert", "insert"]


def test_a_feed_goes_forward(past) -> None:
    with pytest.raises(InvalidInputError, match="goes forward"):
        past(steps=3).changes(3, 1)
    with pytest.raises(ColumnNotFoundError):
        past(steps=3).changes(1, columns=["nobody"])
    with pytest.raises(InvalidInputError, match="batch_size"):
        past(steps=3).changes(1, batch_size=0)


def test_a_version_that_was_cleaned_up_is_named(past) -> None:
    from lance_nb.storage.registry import open_store

    ds = past(steps=4)
    store = open_store(ds.uri, None)
    feed = lance_nb.dataset(ds.uri).changes(1)
    name = next(
        one for one in store.list_names("_versions") if one.endswith(f"{2**64 - 1 - 2}.manifest")
    )
    store.delete(f"_versions/{name}")

    with pytest.raises(VersionNotFoundError, match="version 2"):
        feed.read_all()


def test_versions_whose_transactions_are_gone_are_compared(past) -> None:
    ds = past(steps=4)
    wanted = _events(ds.changes(1))
    log = type(ds.opened[0].log(None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "transaction", lambda _self, _version: None)
        assert _events(ds.changes(1)) == wanted


def test_a_deleted_row_has_the_columns_of_the_version_before(past) -> None:
    ds = past(steps=5)  # the newest version added the column w, and changed no row
    ds.delete("id = 4")
    feed = lance_nb.dataset(ds.uri).changes(4, columns=["w"]).read_all()

    assert feed.column("w").to_pylist() == [8]


def test_a_feed_has_the_types_of_the_newest_version(two_fragments) -> None:
    two_fragments.update({"v": "v + 0.5"}, where="id = 1")
    two_fragments.alter_columns({"path": "v", "data_type": pa.float32()})
    two_fragments.update({"v": "v + 1"}, where="id = 2")
    feed = two_fragments.changes(1).read_all()
    assert feed.schema.field("v").type == pa.float32()
    rows = zip(feed["_commit_version"].to_pylist(), feed["v"].to_pylist(), strict=True)
    assert list(rows) == [(2, 1.0), (2, 1.5), (4, 2.0), (4, 3.0)]


def test_values_of_a_feed_that_the_newest_type_cannot_hold_are_null(two_fragments) -> None:
    two_fragments.add_columns({"n": "id + 5000000000"})
    first = two_fragments.version
    two_fragments.update({"n": "id"}, where="true")
    two_fragments.alter_columns({"path": "n", "data_type": pa.int32()})
    feed = two_fragments.changes(first).read_all()
    assert feed.schema.field("n").type == pa.int32()
    assert feed["n"].to_pylist() == [None] * 4 + [0, 1, 2, 3]
