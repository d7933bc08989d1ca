"""Operations with every field set: their messages, what they touch, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_nb._pb import transaction as pb
from lance_nb.errors import (
    ArgumentError,
    CorruptFileError,
    DatasetAlreadyExistsError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.format.fragment import DataFile
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexFile
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.manifest import BasePath
from lance_nb.format.schema import Schema
from lance_nb.transactions.operation import Footprint
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.data_overlay import DataOverlay
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup, RewrittenIndex
from lance_nb.transactions.operations.unknown import Unknown
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.registry import OPERATIONS
from lance_nb.transactions.transaction import Transaction
from tests.support.sample_operations import LOG, UNKNOWN_FIELD
from tests.support.versions import SCHEMA, Versions, deleted, index, new_fragment

OLD = [replace(new_fragment(f"old{one}"), id=one) for one in range(3)]
IDS = ("0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11", "11111111-1111-1111-1111-111111111111")
UPDATE = Update(
    (2,), (deleted(OLD[0], 3),), (new_fragment("new", 4),), (1,), (0, 2),
    UpdateMode.REWRITE_COLUMNS,
    {0: BitMap([1, 3]).serialize()}, KeyFilter((0,), (5, 6)), (LOG,), {1: (2, 4)}, UNKNOWN_FIELD,
)  # fmt: skip
REWRITE = Rewrite(
    [RewriteGroup((OLD[0],), (new_fragment("a"),), UNKNOWN_FIELD)],
    [RewrittenIndex(*IDS, "/url", b"details", 3, (IndexFile("p.lance", 9),), UNKNOWN_FIELD)],
    None,
    RewriteGroup((OLD[1],), (new_fragment("b"),)),
    UNKNOWN_FIELD,
)
MARKED = Schema(SCHEMA.fields, {"k": b"v"})
WHOLE: list[Any] = [
    UPDATE,
    REWRITE,
    Overwrite(MARKED, [OLD[0]], [BasePath(1, "/b", True, "n")], {"c": "d"}, UNKNOWN_FIELD),
    Merge([OLD[0]], MARKED, True, UNKNOWN_FIELD),
    Project(Schema(SCHEMA.fields, {}), True, UNKNOWN_FIELD),
    Clone(True, "dev", 7, "/r", "copy", UNKNOWN_FIELD),
]


@pytest.mark.parametrize("operation", WHOLE, ids=lambda one: one.arm)
def test_every_field_is_written_and_read(operation: Any) -> None:
    read = Transaction.from_bytes(Transaction(1, operation, "u").to_bytes()).operation
    assert read == operation
    for one in fields(operation):
        assert getattr(read, one.name) == getattr(operation, one.name), one.name


@pytest.mark.parametrize("operation", WHOLE, ids=lambda one: one.arm)
def test_a_field_that_is_not_set_is_not_read(operation: Any) -> None:
    kind = OPERATIONS[operation.arm]
    empty = kind.from_pb(type(operation.to_pb())())
    again = kind.from_pb(empty.to_pb())
    assert again == empty != operation


def test_absent_names_differ_from_empty_ones() -> None:
    for name in (None, "", "x"):
        clone = Clone(False, name, 1, "/r", name)
        assert Clone.from_pb(clone.to_pb()) == clone
    bare = RewrittenIndex(*IDS)
    rewrite = Rewrite([], [bare, replace(bare, new_details_value=b"x")])
    message = rewrite.to_pb()
    found = [one.HasField("new_index_details") for one in message.rewritten_indices]
    assert found == [False, True]
    assert Rewrite.from_pb(message) == rewrite


def test_what_an_update_touches() -> None:
    assert UPDATE.footprint() == Footprint(
        changed_fragments=frozenset({0}),
        removed_fragments=frozenset({2}),
        fields_modified=frozenset({1}),
        supplies_values=True,
        inserted_keys=KeyFilter((0,), (5, 6)),
        compacted=((LOG.shard_id, LOG.generation),),
    )
    by_rows = replace(UPDATE, update_mode="rewrite_rows")
    assert by_rows.footprint().moves_rows
    assert not replace(by_rows, new_fragments=()).footprint().moves_rows


def test_what_other_operations_touch() -> None:
    assert REWRITE.footprint() == Footprint(
        removed_fragments=frozenset({0, 1}), groups=(frozenset({0}), frozenset({1}))
    )
    carried = replace(REWRITE, frag_reuse_index=index("__lance_frag_reuse"))
    assert carried.footprint().carries_reuse_index
    ids = frozenset({0, 1, 2})
    project, merge = Project(SCHEMA), Merge([OLD[1]], SCHEMA)
    assert project.footprint() == Footprint(field_ids=ids, may_alter_nullability=True)
    assert not Project(SCHEMA, True).footprint().may_alter_nullability
    assert merge.footprint() == Footprint(
        changed_fragments=frozenset({1}), field_ids=ids, may_alter_nullability=True
    )
    assert not Merge([], SCHEMA, True).footprint().may_alter_nullability
    assert Clone(True, None, 1, "/r").footprint() == Footprint()
    assert DataOverlay(b"").footprint() == Unknown().footprint() == Footprint()
    assert Overwrite(SCHEMA, [], None, {"k": "1"}).footprint().settings.keys == {
        ("config", -1, "k")
    }


@pytest.mark.parametrize("mode", ["", "rewrite_rows", "rewrite_columns", UpdateMode.REWRITE_ROWS])
def test_the_mode_of_an_update_is_a_name(mode: str) -> None:
    made = Update(update_mode=mode)
    assert made.update_mode is UpdateMode(mode or "rewrite_rows")
    assert repr(made.update_mode) == repr(str(made.update_mode))


def test_another_mode_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'rewrite_rows' or 'rewrite_columns', not 'both'"):
        Update(update_mode="both")


@pytest.mark.parametrize(
    "name",
    ["removed_fragment_ids", "updated_fragments", "new_fragments", "fields_modified",
     "fields_for_preserving_frag_bitmap"],
)  # fmt: skip
def test_parts_of_an_update_are_lists_of_their_kind(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} must be a list"):
        Update(**{name: ["x"]})


@pytest.mark.parametrize("data", [b"\xff" * 20, b"", b"\x3a\x30\x00\x00\x01\x00\x00\x00"])
def test_updated_offsets_that_are_no_bitmap_are_refused(data: bytes) -> None:
    versions = Versions(1, stable_row_ids=True)
    broken = Update(
        updated_fragments=(versions.fragment(0),), fields_modified=(1,),
        update_mode=UpdateMode.REWRITE_COLUMNS, updated_fragment_offsets={0: data},
    )  # fmt: skip
    with pytest.raises((InvalidInputError, CorruptFileError)):
        versions.apply(broken)


@pytest.mark.parametrize("name", ["old_id", "new_id"])
def test_ids_of_indices_have_sixteen_bytes(name: str) -> None:
    message = REWRITE.to_pb()
    getattr(message.rewritten_indices[0], name).uuid = b"short"
    with pytest.raises(CorruptFileError, match=r"16 bytes.*5 bytes"):
        Rewrite.from_pb(message, "x.txn")


def test_a_rewrite_of_an_old_release_has_one_group_more() -> None:
    assert REWRITE.all_groups == (*REWRITE.groups, REWRITE.legacy)
    assert replace(REWRITE, legacy=None).all_groups == tuple(REWRITE.groups)
    for name in ("old_fragments", "new_fragments"):
        message = pb.Transaction.Rewrite(**{name: [OLD[0].to_pb()]})
        assert Rewrite.from_pb(message).legacy is not None


def test_operations_that_cannot_be_applied_say_so() -> None:
    versions = Versions(1)
    with pytest.raises(NotSupportedError, match="data overlays are not supported"):
        DataOverlay(b"").apply(versions.context())
    with pytest.raises(NotSupportedError, match=r"cannot apply .*field 116"):
        Unknown((116,)).apply(versions.context())
    with pytest.raises(NotSupportedError, match="cannot write no operation recorded"):
        Unknown().to_pb()
    with pytest.raises(DatasetAlreadyExistsError):
        Clone(True, None, 1, "/r").apply(versions.context())


# --- versions that they make ----------------------------------------------------------------------


def cloned(clone: Clone, versions: Versions) -> Any:
    return clone.apply(replace(versions.context(), current=None, indices=()))


def test_a_shallow_clone_reads_the_files_where_they_are() -> None:
    versions = Versions(2)
    file = replace(versions.fragment(1).files[0], base_id=4)
    source = versions.manifest
    changed = replace(deleted(versions.fragment(0), 1), files=(versions.fragment(0).files[0], file))
    fragments = FragmentList.of([changed])
    manifest = replace(
        source, fragments=fragments, base_paths=(BasePath(4, "/elsewhere"),),
        reader_feature_flags=source.reader_feature_flags | 1,
        writer_feature_flags=source.writer_feature_flags | 1,
    )  # fmt: skip
    indices = (index("i", 0), replace(index("j", 1), base_id=4))
    context = replace(
        versions.context(), current=None, indices=(), load_version=lambda _: (manifest, indices)
    )

    built = Clone(True, "dev", 1, "/source", "copy").apply(context)

    assert built.manifest.branch == "copy"
    assert built.manifest.base_paths == (
        BasePath(4, "/elsewhere"), BasePath(5, "/source", True, "dev"),
    )  # fmt: skip
    first = built.manifest.fragments[0]
    assert [one.base_id for one in first.files] == [5, 4]
    assert first.deletion_file is not None
    assert first.deletion_file.base_id == 5
    assert [one.base_id for one in built.indices] == [5, 4]

    copied = Clone(False, None, 1, "/source").apply(context)

    assert (copied.manifest.base_paths, copied.manifest.branch) == ((), None)
    first = copied.manifest.fragments[0]
    assert [one.base_id for one in first.files] == [None, None]
    assert first.deletion_file is not None
    assert first.deletion_file.base_id is None
    assert [one.base_id for one in copied.indices] == [None, None]


def test_the_first_clone_has_base_zero() -> None:
    built = cloned(Clone(True, None, 1, "/source"), Versions(1))
    assert built.manifest.base_paths == (BasePath(0, "/source", True, None),)
    assert built.manifest.version == 1


def test_columns_that_are_dropped_take_their_files_along() -> None:
    versions = Versions(1)
    more = DataFile("more.lance", (3,), (0,), 2, 2, 50)
    wide = Schema(
        (*SCHEMA.fields, replace(SCHEMA.fields[0], id=3, name="d")),
        versions.manifest.schema.metadata,
    )
    fragment = versions.fragment(0)
    versions.apply(Merge([replace(fragment, files=(*fragment.files, more))], wide, True))
    assert len(versions.fragment(0).files) == 2
    versions.apply(Project(SCHEMA, True))
    assert [one.path for one in versions.fragment(0).files] == ["first0.lance"]
    versions.apply(Project(Schema(SCHEMA.fields[:1], {}), True))
    assert [one.path for one in versions.fragment(0).files] == ["first0.lance"]


def test_a_merge_names_the_first_fragment_that_it_lacks() -> None:
    versions = Versions(3)
    with pytest.raises(InvalidInputError, match="fragment 1 is not among its 1"):
        versions.apply(Merge([versions.fragment(0)], SCHEMA))


def test_an_arrow_schema_in_a_merge_is_numbered_anew_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="LanceSchema"):
        made = Merge([], pa.schema([("a", pa.int8()), ("b", pa.int8())]))
    assert [one.id for one in made.schema.tree.walk()] == [0, 1]


@pytest.mark.parametrize(
    ("version", "second"), [((2, 1), False), ((2, 2), True), (None, True)], ids=str
)
def test_blobs_of_an_arrow_schema_are_as_the_files_have_them(
    version: tuple[int, int] | None, second: bool
) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    fragments = []
    if version is not None:
        file = DataFile("x.lance", (0,), (0,), *version, 100)
        fragments = [replace(new_fragment(), files=(file,))]
    made = Overwrite(pa.schema([field]), fragments)
    assert (made.new_schema.tree.field("b").extension_name == "lance.blob.v2") is second
