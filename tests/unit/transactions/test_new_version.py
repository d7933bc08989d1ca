"""A new version: applied, checked, serialized."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import CorruptFileError, InternalError
from lance_nb.format.feature_flags import DELETION_FILES, STABLE_ROW_IDS
from lance_nb.format.fragment import InlineSequence, RowDatasetVersionMeta, RowIdMeta
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.layout import HINT_PATH, ManifestName, NamingScheme
from lance_nb.format.manifest import Manifest, parse_manifest
from lance_nb.transactions.new_version import (
    build,
    check_invariants,
    prepare,
    with_message,
    write_hint,
    write_transaction_file,
)
from lance_nb.transactions.operation import ApplyContext, Built
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA, Table
from tests.support.faulty_store import Fault, on
from tests.support.versions import Versions, deleted, index, new_fragment

NAME = ManifestName(4, NamingScheme.V2)


def test_what_is_prepared_is_what_will_be_read():
    table = Table()
    transaction = table.appending(3)
    manifest = Manifest(4, SCHEMA, transaction_file=transaction.file_name)
    found = prepare(table.root, Built(manifest, ()), transaction, NAME)
    assert table.inner.list_recursive("") == []
    read = parse_manifest(found.data, f"{table.root.uri}/{NAME.path}")
    assert read == found.committed.manifest
    assert read.transaction_section == found.committed.manifest.transaction_section
    assert (read.size_bytes, read.path) == (
        found.committed.manifest.size_bytes,
        found.committed.manifest.path,
    )
    assert write_transaction_file(table.root, found) == transaction.file_name
    assert bytes(table.inner.read(f"_transactions/{transaction.file_name}")) == found.inline


def test_a_version_without_a_transaction_file_writes_none():
    table = Table()
    found = prepare(table.root, Built(Manifest(4, SCHEMA), ()), table.appending(3), NAME)
    assert write_transaction_file(table.root, found) == ""
    assert table.inner.list_recursive("") == []


def test_a_hint_that_cannot_be_written_is_left():
    table = Table(on("write", "", Fault.NO_SPACE))
    write_hint(table.root, 3)
    write_hint(table.root, 4)
    assert bytes(table.inner.read(HINT_PATH)) == b'{"version":4}'


def test_a_message_is_a_property_and_none_changes_nothing():
    transaction = Table().appending(1)
    assert with_message(transaction, None) is transaction
    assert with_message(transaction, "").message == ""


TRANSACTION = Transaction(1, Append(()), "u", tag="v1")


def test_the_version_names_its_transaction() -> None:
    manifest = build(TRANSACTION, Versions(1).context()).manifest
    assert (manifest.transaction_file, manifest.tag) == ("1-u.txn", "v1")


def test_an_inline_only_transaction_has_no_file() -> None:
    context = Versions(1).context(no_transaction_file=True)
    assert build(TRANSACTION, context).manifest.transaction_file == ""


def test_building_is_repeatable() -> None:
    context = Versions(1).context()
    assert build(TRANSACTION, context) == build(replace(TRANSACTION), context)


def test_an_outcome_that_names_another_transaction_is_corrected() -> None:
    def apply(context: ApplyContext) -> Built:
        built = Append(()).apply(context)
        manifest = replace(built.manifest, transaction_file="other.txn", tag="other")
        return replace(built, manifest=manifest)

    manifest = build(TRANSACTION, Versions(1).context(), apply).manifest
    assert (manifest.transaction_file, manifest.tag) == ("1-u.txn", "v1")


def test_an_outcome_that_no_dataset_may_have_is_not_returned() -> None:
    def apply(context: ApplyContext) -> Built:
        built = Append(()).apply(context)
        return replace(built, manifest=replace(built.manifest, version=1))

    with pytest.raises(InternalError):
        build(TRANSACTION, Versions(1).context(), apply)


@pytest.mark.parametrize("part", ["transaction_file", "tag"])
def test_either_name_is_corrected_by_itself(part: str) -> None:
    def apply(context: ApplyContext) -> Built:
        built = Append(()).apply(context)
        return replace(built, manifest=replace(built.manifest, **{part: "other"}))

    manifest = build(TRANSACTION, Versions(1).context(), apply).manifest
    assert (manifest.transaction_file, manifest.tag) == ("1-u.txn", "v1")


def appended(*, stable_row_ids: bool = False) -> tuple[Versions, Built]:
    versions = Versions(2, stable_row_ids=stable_row_ids)
    context = versions.context()
    return versions, Append((new_fragment("x"),)).apply(context)


def refuse(versions: Versions, built: Built, problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        check_invariants(built, versions.context())


def test_a_whole_version_passes() -> None:
    versions, built = appended()
    check_invariants(built, versions.context())


def test_the_version_number_follows() -> None:
    versions, built = appended()
    refuse(versions, replace(built, manifest=replace(built.manifest, version=9)), "number is 9")


def test_fragment_ids_differ_and_are_new() -> None:
    versions, built = appended()
    taken = replace(built.fresh[0], id=1)
    refuse(versions, replace(built, fresh=(taken,)), "ids up to 1 are taken")
    refuse(versions, replace(built, fresh=built.fresh * 2), "same id")
    twice = FragmentList.of([taken, taken])
    manifest = replace(built.manifest, fragments=twice)
    refuse(versions, replace(built, manifest=manifest, only_appended=False), "same id")


def test_the_highest_id_is_said() -> None:
    versions, built = appended()
    manifest = replace(built.manifest, max_fragment_id=1)
    refuse(versions, replace(built, manifest=manifest), "highest id is said to be 1")


@pytest.mark.parametrize("bit", [DELETION_FILES, STABLE_ROW_IDS])
def test_flags_are_in_both_words(bit: int) -> None:
    versions, built = appended()
    manifest = replace(built.manifest, reader_feature_flags=bit)
    refuse(versions, replace(built, manifest=manifest, fresh=()), "one word only")


def test_deletion_files_are_announced_and_fit() -> None:
    versions, built = appended()
    fresh = (deleted(built.fresh[0], 3),)
    refuse(versions, replace(built, fresh=fresh), "flags do not say so")
    refuse(versions, replace(built, fresh=(deleted(built.fresh[0], 11),)), "11 deleted ones")


def test_row_ids_cover_the_rows() -> None:
    versions, built = appended(stable_row_ids=True)
    (fragment,) = built.fresh
    refuse(versions, replace(built, fresh=(replace(fragment, row_id_meta=None),)), "no row ids")
    short = replace(fragment, row_id_meta=RowIdMeta(InlineSequence(b"")))
    refuse(versions, replace(built, fresh=(short,)), "0 row ids")
    short = replace(fragment, created_at_version_meta=RowDatasetVersionMeta(InlineSequence(b"")))
    refuse(versions, replace(built, fresh=(short,)), "0 creation versions")
    plain, other = appended()
    refuse(plain, replace(other, fresh=(fragment,)), "has row ids")


def test_files_fit_their_fragment() -> None:
    versions, built = appended()
    (fragment,) = built.fresh
    (file,) = fragment.files
    twice = replace(fragment, files=(file, file))
    refuse(versions, replace(built, fresh=(twice,)), "field in two files")
    short = replace(fragment, files=(replace(file, column_indices=(0,)),))
    refuse(versions, replace(built, fresh=(short,)), "different numbers")
    elsewhere = replace(fragment, files=(replace(file, base_id=4),))
    refuse(versions, replace(built, fresh=(elsewhere,)), "base 4")


def test_indices_differ() -> None:
    versions = Versions(1)
    built = CreateIndex((index("i", 0),)).apply(versions.context())
    refuse(versions, replace(built, indices=built.indices * 2), "same uuid")


def test_a_version_made_of_a_damaged_one_is_the_fault_of_that() -> None:
    versions, built = appended()
    current = replace(versions.manifest, max_fragment_id=0)
    context = replace(versions.context(), current=current)
    bad = replace(built, manifest=replace(built.manifest, max_fragment_id=1))
    with pytest.raises(CorruptFileError, match="highest id is said to be 0"):
        check_invariants(bad, context)
    with pytest.raises(InternalError):
        check_invariants(bad, versions.context(), [(versions.manifest, ())])


def test_a_restored_version_may_be_the_damaged_one() -> None:
    versions, _ = appended()
    versions.apply(Append((new_fragment("x"),)))
    versions.built[1] = replace(versions.built[1], indices=(index("i", 0),) * 2)
    with pytest.raises(CorruptFileError, match="same uuid"):
        versions.apply(Restore(1))


def test_a_fragment_that_was_never_counted_is_damage() -> None:
    """Rows are counted in the file then, and a deletion file would say more than there are."""
    versions, built = appended()
    uncounted = replace(versions.fragment(0), physical_rows=0)
    current = replace(versions.manifest, fragments=FragmentList.of([uncounted]))
    fresh = (deleted(uncounted, 3),)
    with pytest.raises(CorruptFileError, match="fragment 0 has no number of rows"):
        check_invariants(replace(built, fresh=fresh), replace(versions.context(), current=current))
