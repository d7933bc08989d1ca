"""The manifest of a new version, and its feature flags."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.feature_flags import (
    BASE_PATHS,
    COVERING_INDEX_METADATA,
    DELETION_FILES,
    FIELD_IDS_NOT_REUSED,
    MIXED_FILE_VERSIONS,
    NO_TRANSACTION_FILES,
    SPILLED_ROW_LINEAGE,
    STABLE_ROW_IDS,
    TABLE_CONFIG,
)
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import BasePath, Manifest
from lance_nb.format.merged_logs import merged_logs
from lance_nb.format.schema import Schema
from lance_nb.transactions.manifest_building import (
    STICKY,
    WRITER,
    Draft,
    check_changeable,
    cover_moved,
    cover_rewritten,
    flag_words,
    prune_fields,
    record_merged_logs,
    remap,
    retain_useful,
)
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.update import Update
from tests.support.sample_operations import LOG, log_index
from tests.support.versions import SCHEMA, Versions, deleted, index, minimal_manifest, new_fragment


def test_we_say_who_wrote_it() -> None:
    assert str(WRITER) == f"lance_nb {lance_nb.__version__}"
    assert Versions(1).manifest.writer_version == WRITER


def test_what_belongs_to_the_old_file_is_not_taken_over() -> None:
    versions = Versions(1)
    old = replace(versions.manifest, tag="t", path="x", size_bytes=9, raw=b"y", version_aux_data=7)
    versions.built[1] = replace(versions.newest, manifest=old)
    built = Append(()).apply(versions.context())
    new = built.manifest
    assert (new.tag, new.path, new.size_bytes, new.raw) == ("", "", 0, b"")
    assert new.version_aux_data == 0
    assert new.timestamp_ns == 1_700_000_000_000_000_000


def test_the_highest_id_is_counted_where_it_is_not_recorded() -> None:
    versions = Versions(3)
    silent = replace(versions.manifest, max_fragment_id=None)
    versions.built[1] = replace(versions.newest, manifest=silent)
    versions.apply(Append((new_fragment("x"),)))
    assert versions.fragment_ids == [0, 1, 2, 3]


def test_fragments_out_of_order_are_put_in_order() -> None:
    versions = Versions(3)
    mixed = FragmentList.of(versions.fragment(one) for one in (2, 0, 1))
    manifest = replace(versions.manifest, fragments=mixed)
    versions.built[1] = replace(versions.newest, manifest=manifest)
    versions.apply(Delete((deleted(versions.fragment(2), 1),)))
    assert versions.fragment_ids == [0, 1, 2]
    assert versions.fragment(2).num_deleted_rows == 1


def test_a_file_of_a_column_that_was_dropped_meanwhile_is_left_out() -> None:
    versions = Versions(1)
    gone = DataFile("gone.lance", (7,), (0,), 2, 2)
    hidden = DataFile("hidden.lance", (-3,), (0,), 2, 2)
    old = versions.fragment(0)
    stale = replace(old, files=(*old.files, gone, hidden))
    versions.apply(Update(updated_fragments=(stale,)))
    assert [one.path for one in versions.fragment(0).files] == ["first0.lance", "hidden.lance"]


def with_fields(fragment: Fragment, *ids: int) -> Fragment:
    return replace(fragment, files=[replace(fragment.files[0], fields=ids)])


@pytest.mark.parametrize("ids", [(-1, -1, -1), (7, 8, 9), (-2, -2, 9)])
def test_the_last_file_of_a_fragment_stays(ids: tuple[int, ...]) -> None:
    versions = Versions(1)
    odd = with_fields(new_fragment("x"), *ids)
    versions.apply(Append((odd,)))
    versions.apply(Project(Schema(SCHEMA.fields[1:]), True))
    assert versions.fragment(1).files == odd.files


def test_a_fragment_without_a_file_that_is_read_is_refused() -> None:
    versions = Versions(1)
    dead = with_fields(new_fragment("x"), -2, -2, -2)
    for odd, reason in (
        (dead, "has been replaced"),
        (replace(dead, files=()), "it has no data file"),
    ):
        for change in (Append((odd,)), Update(updated_fragments=(replace(odd, id=0),))):
            with pytest.raises(InvalidInputError, match=reason):
                versions.apply(change)


def test_a_delete_takes_the_deletion_file_only() -> None:
    versions = Versions(1)
    old = versions.fragment(0)
    versions.apply(Delete((deleted(with_fields(old, -1, -1, -1), 1),)))
    assert versions.fragment(0) == deleted(old, 1)


def test_files_of_another_version_are_announced() -> None:
    versions = Versions(1)
    other = new_fragment("x")
    other = replace(other, files=[replace(other.files[0], file_minor_version=1)])
    for change in (Append((other,)), Delete(deleted_fragment_ids=(1,))):  # it stays so
        versions.apply(change)
        flags = versions.manifest.reader_feature_flags, versions.manifest.writer_feature_flags
        assert flags == (MIXED_FILE_VERSIONS, MIXED_FILE_VERSIONS)


def test_a_detached_version_has_the_number_it_was_given() -> None:
    versions = Versions(1)
    number = (1 << 63) + 5
    assert versions.apply(Append(()), detached_version=number).manifest.version == number


def test_field_ids_that_are_not_reused_are_counted() -> None:
    versions = Versions(1)
    manifest = replace(versions.manifest, max_allocated_field_id=7)
    draft = Draft(versions.context(), manifest)
    draft.set_schema(SCHEMA)
    assert draft.manifest.max_allocated_field_id == 7
    draft = Draft(versions.context(), replace(manifest, max_allocated_field_id=1))
    draft.set_schema(SCHEMA)
    assert draft.manifest.max_allocated_field_id == 2


def test_flags_and_fields_we_do_not_know_forbid_writing() -> None:
    manifest = Versions(1).manifest
    check_changeable(replace(manifest, writer_feature_flags=FIELD_IDS_NOT_REUSED))
    with pytest.raises(NotSupportedError, match="writing"):
        check_changeable(replace(manifest, writer_feature_flags=1 << 40))
    with pytest.raises(NotSupportedError, match="holds fields"):
        check_changeable(replace(manifest, unknown=b"\xba\x3e\x00"))


def words(manifest: Manifest, *indices: object, **given: bool) -> tuple[int, int]:
    known = {
        "row_ids": False,
        "deletions": False,
        "mixed_versions": False,
        "no_transaction_file": False,
        **given,
    }
    return flag_words(manifest, list(indices), **known)


def test_nothing_special_needs_no_flag() -> None:
    assert words(minimal_manifest()) == (0, 0)


def test_each_content_has_its_bit() -> None:
    plain = minimal_manifest()
    assert words(plain, deletions=True) == (DELETION_FILES,) * 2
    assert words(plain, row_ids=True) == (STABLE_ROW_IDS,) * 2
    assert words(replace(plain, base_paths=(BasePath(0, "/"),))) == (BASE_PATHS,) * 2
    assert words(replace(plain, config={"k": "v"})) == (0, TABLE_CONFIG)
    assert words(plain, no_transaction_file=True) == (0, NO_TRANSACTION_FILES)
    covering = replace(index("i", 0), covering_fields=(1,))
    assert words(plain, covering) == (COVERING_INDEX_METADATA,) * 2


def test_what_cannot_be_seen_stays_and_the_rest_goes() -> None:
    every = replace(
        minimal_manifest(),
        reader_feature_flags=STICKY | SPILLED_ROW_LINEAGE | DELETION_FILES,
        writer_feature_flags=STICKY | TABLE_CONFIG,
    )
    assert words(every) == (STICKY, STICKY)


def draft(*indices: IndexMetadata, fragments: int = 3) -> Draft:
    versions = Versions(fragments)
    made = Draft(versions.context(), versions.manifest)
    made.indices = list(indices)
    return made


def covered(made: Draft) -> dict[str, list[int]]:
    return {one.name: sorted(one.fragment_ids() or ()) for one in made.indices}


def test_only_indices_on_the_fields_are_pruned() -> None:
    carries = replace(index("carries", 1), covering_fields=(0,))
    made = draft(index("a", 0), index("b", 1), carries)
    prune_fields(made, {1}, {0})
    assert covered(made) == {"a": [0, 2], "b": [0, 1, 2], "carries": [0, 2]}
    prune_fields(made, {0}, set())
    assert covered(made)["a"] == [0, 2]


def test_moved_rows_are_covered_if_all_their_sources_were() -> None:
    made = draft(
        index("whole", 0, kind="Bitmap"),
        index("part", 0, covers=(0,), kind="Bitmap"),
        index("changed", 1, kind="Bitmap"),
        index("addresses", 0, kind="BTree"),
        replace(index("silent", 0, kind="Bitmap"), fragment_bitmap=b""),
    )
    cover_moved(made, {7}, {0, 1}, {1})
    assert covered(made) == {
        "whole": [0, 1, 2, 7],
        "part": [0],
        "changed": [0, 1, 2],
        "addresses": [0, 1, 2],
        "silent": [],
    }


def test_successors_are_covered_where_rows_are_known_by_id() -> None:
    made = draft(index("ids", 0, kind="Vector"), index("addresses", 0), index("mapped", 0))
    cover_rewritten(made, [({0, 1}, {8})], {made.indices[2].uuid})
    assert covered(made) == {"ids": [2, 8], "addresses": [2], "mapped": [0, 1, 2]}


def test_a_remapped_copy_takes_the_place() -> None:
    made = draft(index("i", 0))
    new_id = "11111111-1111-1111-1111-111111111111"
    remap(made, [({0, 1}, {8}), ({5}, {9})], made.indices[0].uuid, new_id, ())
    assert (made.indices[0].uuid, covered(made)) == (new_id, {"i": [2, 8]})
    remap(made, [], "gone", new_id, ())
    made.indices = [replace(index("i", 0), fragment_bitmap=b"")]
    with pytest.raises(InvalidInputError, match="does not say"):
        remap(made, [], made.indices[0].uuid, new_id, ())


def test_of_several_parts_those_that_cover_something_stay() -> None:
    old, new = (
        replace(index(name, 0, covers=at), name="i") for name, at in (("o", (9,)), ("n", (1,)))
    )
    made = draft(old, new)
    retain_useful(made)
    assert made.indices == [new]


def test_of_parts_that_cover_nothing_the_oldest_stays() -> None:
    parts = [replace(index(str(at), 0, covers=()), name="i", dataset_version=at) for at in (5, 3)]
    made = draft(*parts)
    retain_useful(made)
    assert made.indices == [parts[1]]
    made = draft(replace(index("v", 0, covers=(), kind="Vector")))
    retain_useful(made)
    assert made.indices == []


def test_the_index_is_changed_in_its_place_and_belongs_to_the_new_version() -> None:
    versions = Versions(1)
    draft = Draft(versions.context(), versions.manifest)
    draft.indices = [index("before", 0), *log_index().added, index("behind", 0)]
    record_merged_logs(draft, [LOG])
    assert [one.name for one in draft.indices] == ["before", "__lance_mem_wal", "behind"]
    assert merged_logs(draft.indices[1].details) == (LOG,)
    assert draft.indices[1].dataset_version == 2
