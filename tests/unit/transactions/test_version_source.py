from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import (
    CorruptFileError,
    NotSupportedError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest import Manifest
from lance_nb.transactions.version_slots import StoreSlots
from lance_nb.transactions.version_source import VersionSource, parse_version
from tests.support.committing import SCHEMA, Table
from tests.support.faulty_store import Fault, FaultyStore, on


def _table(**more) -> Table:
    table = Table()
    table.create(**more)
    table.append(1)
    return table


def test_a_version_is_read_once():
    table = _table()
    source = VersionSource(table.place.slots)
    source.head(0)
    assert source.load(2) is source.load(2)
    assert source.transaction(2).operation.arm == "append"
    assert [step.method for step in table.root.steps] == ["list_names", "read_tail"]


@pytest.mark.parametrize("v2", [True, False])
def test_a_version_that_listings_do_not_show_yet_counts(v2: bool):
    table = _table(enable_v2_manifest_paths=v2)
    scheme = NamingScheme.V2 if v2 else NamingScheme.V1
    table.root.world.plan = on("list_names", "", Fault.EMPTY_LIST, times=9)
    assert VersionSource(table.place.slots).head(2) == ManifestName(2, scheme)
    assert VersionSource(table.place.slots).head(0) is None
    assert VersionSource(table.place.slots).head(9) is None


@pytest.mark.parametrize("v2", [True, False])
def test_a_version_is_read_before_anybody_asked_for_the_newest(v2: bool):
    table = _table(enable_v2_manifest_paths=v2)
    assert VersionSource(table.place.slots).load(1).manifest.version == 1


def test_nothing_is_the_head_of_nothing():
    assert VersionSource(Table().place.slots).head(0) is None
    assert not VersionSource(Table().place.slots).has(1)


def test_a_missing_version_is_reported():
    source = VersionSource(_table().place.slots)
    with pytest.raises(VersionNotFoundError, match="7"):
        source.load(7)


def test_a_manifest_with_another_number_is_damage():
    table = _table()
    data = table.inner.read("_versions/18446744073709551613.manifest")
    with pytest.raises(CorruptFileError, match="version 3"):
        parse_version(data, ManifestName(3, NamingScheme.V2), "x")


def test_a_manifest_with_unknown_reader_flags_is_refused():
    made = _table().append(2)
    data = replace(made.manifest, reader_feature_flags=1 << 50).to_bytes()
    with pytest.raises(NotSupportedError):
        parse_version(data, ManifestName(3, NamingScheme.V2), "x")


def test_versions_of_a_distant_store_are_read_ahead_and_missing_ones_are_left_to_load():
    table = Table()
    table.create()
    for version in (1, 2, 3):
        table.append(version)

    class Distant(FaultyStore):
        scheme = "s3"

    distant = Distant(table.inner)
    source = VersionSource(StoreSlots(distant))
    source.head(1)
    source.load_ahead(range(2, 7))
    read = len(distant.steps)
    assert [source.load(version).manifest.version for version in (2, 3, 4)] == [2, 3, 4]
    assert len(distant.steps) == read
    with pytest.raises(VersionNotFoundError):
        source.load(5)


def test_a_transaction_that_nobody_recorded_is_not_known():
    table = _table()
    name = ManifestName(3, NamingScheme.V2)
    table.inner.write(name.path, Manifest(3, SCHEMA).to_bytes())
    source = VersionSource(table.place.slots)
    source.head(3)
    with pytest.raises(RetryableCommitConflictError, match="its writer recorded no transaction"):
        source.transaction(3)
    with pytest.raises(RetryableCommitConflictError, match="removed in the meantime"):
        source.transaction(9)


def test_a_transaction_is_read_from_its_file_where_the_manifest_holds_none():
    table = _table()
    transaction = table.appending(2)
    manifest = Manifest(3, SCHEMA, transaction_file=transaction.file_name)
    table.inner.write(ManifestName(3, NamingScheme.V2).path, manifest.to_bytes())
    source = VersionSource(table.place.slots)
    source.head(3)
    with pytest.raises(RetryableCommitConflictError, match=f"{transaction.file_name} is gone"):
        source.transaction(3)
    table.inner.write(f"_transactions/{transaction.file_name}", transaction.to_bytes())
    assert source.transaction(3) == transaction


@pytest.mark.parametrize(
    ("gone", "first", "found"),
    [((), 2, [2, 3, 4]), ((2,), 2, [3, 4]), ((2, 3), 1, [1, 4]), ((), 4, [4]), ((), 5, [])],
)
def test_versions_that_were_cleaned_up_are_left_out(
    gone: tuple[int, ...], first: int, found: list[int]
):
    table = _table()
    for version in (2, 3):
        table.append(version)
    for version in gone:
        table.inner.delete(ManifestName(version, NamingScheme.V2).path)
    source = VersionSource(table.place.slots)
    head = source.head(4)
    assert head is not None
    assert list(source.present_versions(first, head)) == found
