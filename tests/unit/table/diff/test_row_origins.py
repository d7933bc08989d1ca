"""Rows followed through compactions, and what happens when the trace is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lance_nb
from lance_nb.table.snapshot import read_transaction
from lance_nb.table.verification.transactions import transaction_findings
from tests.unit.table.diff.conftest import rows


def _summary(diff) -> tuple[int, int, int]:
    found = diff.summary()
    return found.added, found.removed, found.changed


@pytest.fixture
def compacted(make):
    """Without stable row ids: 2 deletes, 3 compacts, 4 deletes, 5 appends, 6 compacts."""
    ds = make(max_rows_per_file=3)
    ds.delete("id = 4")
    ds.optimize.compact_files()
    ds.delete("id = 5")
    lance_nb.write_dataset(ds.to_table(limit=2), ds.uri, mode="append")
    lance_nb.dataset(ds.uri).optimize.compact_files()
    return lance_nb.dataset(ds.uri)


def test_rows_are_followed_through_compactions_of_compactions(compacted) -> None:
    last = compacted.version

    assert _summary(compacted.diff(1)) == (2, 2, 0)
    assert _summary(compacted.diff(last, 1)) == (2, 2, 0)
    assert _summary(compacted.diff(2, 3)) == (0, 0, 0)
    rows = compacted.diff(1).rows().read_all()
    assert rows.column("id").to_pylist() == [0, 1, 4, 5]


def test_a_column_written_anew_after_a_compaction_is_compared(make) -> None:
    ds = make(max_rows_per_file=3)
    ds.add_columns({"w": "id"})
    before = ds.version
    ds.optimize.compact_files()
    ds.drop_columns(["w"])
    ds.add_columns({"w": "cast(case when id = 2 then 9 else id end as bigint)"})

    diff = lance_nb.dataset(ds.uri).diff(before)
    assert _summary(diff) == (0, 0, 1)
    assert diff.cells("w").read_all().to_pylist()[0]["w"] == {"old": 2, "new": 9}


def test_both_sides_of_a_fork_may_have_been_compacted(make) -> None:
    ds = make(max_rows_per_file=3)
    ds.create_branch("dev", 1)
    dev = lance_nb.dataset(ds.uri, ("dev", None))
    dev.optimize.compact_files()
    ds.delete("id = 8")
    ds.optimize.compact_files()

    assert _summary(lance_nb.dataset(ds.uri).diff("dev", "main")) == (0, 1, 0)


def test_rows_appended_and_compacted_after_a_fork_from_an_empty_version_are_not_shared(
    make,
) -> None:
    ds = make(rows(0, 0))
    ds.create_branch("dev", 1)
    for ref in (None, ("dev", None)):
        for start in (0, 3):
            lance_nb.dataset(ds.uri, ref).insert(rows(start, start + 3))
        lance_nb.dataset(ds.uri, ref).optimize.compact_files()

    assert _summary(lance_nb.dataset(ds.uri).diff("dev", "main")) == (6, 6, 0)


def test_a_transaction_is_read_from_its_file_where_the_manifest_has_no_copy(make) -> None:
    snapshot = make().opened[1]
    without = replace(snapshot, manifest=replace(snapshot.manifest, transaction_section=None))
    name = snapshot.manifest.transaction_file

    expected = snapshot.locations.home.read(f"_transactions/{name}")
    assert read_transaction(without) == expected
    assert read_transaction(snapshot) == expected
    bare = replace(without, manifest=replace(without.manifest, transaction_file=""))
    assert read_transaction(bare) is None


def test_a_restore_of_what_was_before_a_compaction_changes_no_row(make) -> None:
    ds = make(max_rows_per_file=3)
    ds.optimize.compact_files()
    last = lance_nb.dataset(ds.uri).version
    ds.checkout_version(1).restore()

    assert _summary(lance_nb.dataset(ds.uri).diff(last)) == (0, 0, 0)


def test_without_the_transaction_rows_are_matched_by_key_or_counted_as_new(compacted) -> None:
    log = type(compacted.opened[0].log(None))
    whole = log.transaction

    def forgotten(self, version):
        return None if version == 3 else whole(self, version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "transaction", forgotten)

        assert _summary(compacted.diff(2, 3)) == (9, 9, 0)
        assert _summary(compacted.diff(2, 3, key="id")) == (0, 0, 0)


@pytest.mark.parametrize("tail", [64, 200])
def test_a_transaction_before_the_tail_of_a_manifest_is_read_by_itself(
    make, monkeypatch: pytest.MonkeyPatch, tail: int
) -> None:
    ds = make()
    ds.delete("id = 4")
    whole = bytes(read_transaction(ds.opened[1]) or b"")
    assert lance_nb.verify(ds.uri).findings == ()
    monkeypatch.setattr("lance_nb.table.versions.TAIL_BYTES", tail)
    snapshot = lance_nb.dataset(ds.uri).checkout_version(2).opened[1]
    section = snapshot.manifest.transaction_section
    assert section is not None
    outside = replace(section, data=None)
    snapshot = replace(snapshot, manifest=replace(snapshot.manifest, transaction_section=outside))
    assert bytes(read_transaction(snapshot) or b"") == whole
    effects, findings = transaction_findings(snapshot)
    assert (effects is not None and effects.read_version, findings) == (1, [])
