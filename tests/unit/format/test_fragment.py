"""Fragments, and lists of them kept as bytes."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.fragment import (
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionFileType,
    ExternalSequence,
    Fragment,
    InlineSequence,
    RowDatasetVersionMeta,
    RowIdMeta,
)
from tests.support.manifests import fragment

U64 = st.integers(0, 2**64 - 1)
BASE = st.none() | st.integers(0, 5)
FILES = st.builds(
    DataFile,
    st.text(max_size=10),
    st.lists(st.integers(-3, 100), max_size=4).map(tuple),
    st.lists(st.integers(-1, 100), max_size=4).map(tuple),
    st.integers(0, 9),
    st.integers(0, 9),
    U64,
    BASE,
)
DELETIONS = st.builds(DeletionFile, U64, U64, st.sampled_from(DeletionFileType), U64, BASE)
SEQUENCES = st.builds(InlineSequence, st.binary(max_size=5)) | st.builds(
    ExternalSequence, st.text(max_size=5), U64, U64
)


def versions(field_id: int) -> st.SearchStrategy:
    places = SEQUENCES | st.just(ColumnSequence(field_id))
    return st.none() | st.builds(RowDatasetVersionMeta, places)


@given(
    st.builds(
        Fragment,
        U64,
        st.lists(FILES, max_size=3).map(tuple),
        U64,
        st.none() | DELETIONS,
        st.none() | st.builds(RowIdMeta, SEQUENCES | st.just(ColumnSequence(-3))),
        versions(-4),
        versions(-5),
        clustering_id=st.integers(0, 2**32 - 1),
        metadata=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    )
)
def test_every_field_round_trips(one: Fragment):
    assert Fragment.from_bytes(one.to_bytes()) == one


def test_base_id_zero_differs_from_none():
    zero = DataFile("x", (), (), 2, 2, 0, 0)
    assert DataFile.from_pb(zero.to_pb()).base_id == 0
    assert DataFile.from_pb(DataFile("x", (), (), 2, 2).to_pb()).base_id is None


def test_fields_of_newer_writers_survive_at_every_level():
    new = b"\xfa\x3f\x03abc"
    file = b"\x0a\x01x" + new
    deletion = b"\x18\x05" + new
    raw = b"\x12" + bytes([len(file)]) + file + b"\x1a" + bytes([len(deletion)]) + deletion + new
    one = Fragment.from_bytes(raw)
    assert one.unknown == one.files[0].unknown == one.deletion_file.unknown == new
    assert one.has_unknown_fields
    assert one.to_bytes() == raw


def test_counts_and_places():
    one = fragment(4, 100, 7)
    assert (one.num_rows, one.num_deleted_rows) == (93, 7)
    assert one.files[0].location() == "data/4-0.lance"
    assert one.deletion_file.location(4) == "_deletions/4-3-18446744073709551615.bin"
    with pytest.raises(CorruptFileError, match="leaves the dataset"):
        DataFile("../x", (), (), 2, 2).location("1.manifest")


def test_overlays_are_carried():
    overlay = pb.DataOverlayFile(committed_version=3).SerializeToString()
    one = Fragment(1, (), 5, overlays=(overlay,))
    assert Fragment.from_bytes(one.to_bytes()).overlays == (overlay,)


def test_bytes_that_are_no_fragment_are_damage():
    with pytest.raises(CorruptFileError, match="DataFragment"):
        Fragment.from_bytes(b"\x0a\xff", "x")


# --- as values that users build, compare, keep and send -------------------------------------------

WHOLE = Fragment(
    7,
    [
        DataFile("a.lance", [0, -2], [0, 1], 2, 2, 99),
        DataFile("b.lance", [1], [0], 2, 2, base_id=0),
    ],
    10,
    DeletionFile(3, 2**63 + 1, "bitmap", 4, 0),
    RowIdMeta.inline(b"\x01\x02"),
    RowDatasetVersionMeta.inline(b"\x03"),
    RowDatasetVersionMeta.inline(b"\x04"),
)


def test_lists_are_lists_to_look_at_and_cannot_be_changed():
    file = WHOLE.files[0]
    assert file.fields == [0, -2] == file.fields
    assert file.fields == (0, -2)
    assert file.fields != [0]
    assert [file, WHOLE.files[1]] == WHOLE.files
    assert repr(file).startswith("DataFile(path='a.lance', fields=[0, -2], column_indices=[0, 1]")
    assert json.dumps(file.fields) == "[0, -2]"
    for change in (file.fields.append, WHOLE.files.extend):
        with pytest.raises(TypeError, match=r"dataclasses\.replace"):
            change(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        WHOLE.id = 3
    assert dataclasses.replace(WHOLE, files=list(WHOLE.files)) == WHOLE


@pytest.mark.parametrize("one", [WHOLE, WHOLE.files[0], WHOLE.deletion_file, WHOLE.row_id_meta])
def test_values_are_copied_and_pickled(one: Any):
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)  # noqa: S301


def test_what_is_left_out_of_a_data_file_is_unknown():
    bare = DataFile("x", [1])
    assert (bare.column_indices, bare.file_version, bare.size_bytes) == ([], (0, 0), 0)
    assert DataFile("x", [], file_size_bytes=0).file_size_bytes is None
    with pytest.deprecated_call():
        assert bare.field_ids() == [1]
    with pytest.deprecated_call():
        assert WHOLE.data_files() == WHOLE.files


def test_json_holds_the_whole_fragment():
    text = json.dumps(WHOLE.to_json())
    assert Fragment.from_json(text) == WHOLE
    bare = Fragment(0, [], 0)
    assert bare.to_json() == {
        "id": 0, "files": [], "overlays": [], "physical_rows": 0, "deletion_file": None,
        "row_id_meta": None, "created_at_version_meta": None, "last_updated_at_version_meta": None,
    }  # fmt: skip
    # What a fragment has not may be left out, as pylance's compaction tasks do.
    assert Fragment.from_dict({"id": 0, "files": [], "physical_rows": None}) == bare
    hidden = dataclasses.replace(WHOLE, row_id_meta=RowIdMeta(ColumnSequence(-3)))
    assert Fragment.from_dict(hidden.to_json()) == hidden


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"a": "b"}},
        {"unknown": b"\x08\x01"},
        {"overlays": [b""]},
        {"created_at_version_meta": RowDatasetVersionMeta(ColumnSequence(-4))},
        {"row_id_meta": RowIdMeta(ExternalSequence("x", 0, 1))},
    ],
)
def test_what_json_does_not_hold_is_refused(more: dict[str, Any]):
    with pytest.raises(NotSupportedError):
        dataclasses.replace(WHOLE, **more).to_json()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, "fragment"),
        ([], "fragment"),
        ({"id": "a"}, "'a' is no integer"),
        ({"id": True}, "no integer"),
        ({"files": 3}, "fragment"),
        ({"files": [{}]}, "'path'"),
        ({"files": [{"path": 3, "fields": []}]}, "3 is no text"),
        ({"deletion_file": {"read_version": 1}}, "deletion file"),
        ({"deletion_file": WHOLE.deletion_file.asdict() | {"file_type": "x"}}, "'bitmap', not 'x'"),
        ({"row_id_meta": {"inline": [1]}}, "the one key 'Inline'"),
        ({"row_id_meta": {"Inline": [256]}}, "row id metadata"),
        ({"created_at_version_meta": {"Inline": [1]}}, "the one key 'inline'"),
    ],
)
def test_other_json_is_refused(change: Any, reason: str):
    value = {**WHOLE.to_json(), **change} if isinstance(change, dict) else change
    with pytest.raises(InvalidInputError, match=reason):
        Fragment.from_dict(value)
    with pytest.raises(InvalidInputError, match=reason):
        Fragment.from_json(json.dumps(value))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, None, ""])
def test_text_that_is_no_json_is_refused(text: Any):
    for kind in (Fragment, DeletionFile, RowIdMeta, RowDatasetVersionMeta):
        with pytest.raises(InvalidInputError, match="JSON"):
            kind.from_json(text)


def test_json_of_overlays_is_refused():
    with pytest.raises(NotSupportedError, match="overlays"):
        Fragment.from_dict(WHOLE.to_json() | {"overlays": [{}]})


def test_a_deletion_file_says_where_it_is():
    one = WHOLE.deletion_file
    assert one.path(5) == f"_deletions/5-3-{2**63 + 1}.bin"
    assert one.path(5, "s3://b/x/") == f"s3://b/x/_deletions/5-3-{2**63 + 1}.bin"
    assert one.file_type == "bitmap"
    assert "file_type='bitmap'" in repr(one)
    for wrong in ((-1, 0, "array", 0), (0, 2**64, "array", 0), (0, 0, "array", -1)):
        with pytest.raises(InvalidInputError, match="64 bits"):
            DeletionFile(*wrong)


def test_equal_fragments_have_equal_bytes() -> None:
    """Whatever the order in which their metadata was set."""
    keys = [f"key-{one}" for one in range(40)]
    one, other = (
        Fragment(0, (), 1, metadata=dict.fromkeys(order, "v")) for order in (keys, keys[::-1])
    )
    assert one == other
    assert one.to_bytes() == other.to_bytes()
    assert Fragment.from_bytes(one.to_bytes()) == one


def test_numbers_that_json_leaves_out_are_zero() -> None:
    found = DataFile.from_dict({"path": "x", "fields": [3]})
    assert found == DataFile("x", (3,), (), 0, 0)
    assert (found.file_version, found.size_bytes, found.base_id) == ((0, 0), 0, None)


@pytest.mark.parametrize(
    ("version", "legacy"),
    [((0, 0), True), ((0, 2), True), ((0, 3), False), ((2, 0), False), ((2, 2), False)],
)
def test_files_up_to_0_2_are_legacy(version: tuple[int, int], legacy: bool) -> None:
    assert DataFile("x", (0,), (), *version).is_legacy is legacy


@pytest.mark.parametrize("where", ["", "file", "deletion"])
def test_what_a_newer_writer_added_is_noticed_wherever_it_is(where: str) -> None:
    newer = b"\xfa\x3f\x01x"  # field 1023
    file = DataFile("x", (0,), (0,), 2, 2)
    deletion = DeletionFile(1, 2, DeletionFileType.ARROW, 3)
    plain = Fragment(0, (file, file), 10, deletion)
    assert not plain.has_unknown_fields
    assert not dataclasses.replace(plain, deletion_file=None).has_unknown_fields
    changed = {
        "": {"unknown": newer},
        "file": {"files": (file, dataclasses.replace(file, unknown=newer))},
        "deletion": {"deletion_file": dataclasses.replace(deletion, unknown=newer)},
    }[where]
    assert dataclasses.replace(plain, **changed).has_unknown_fields


def test_parts_of_a_fragment_are_json_text() -> None:
    plain = fragment(3, deleted=4)
    assert plain.num_deletions == plain.num_deleted_rows == 4
    assert plain.deletion_file is not None
    assert json.loads(plain.deletion_file.json()) == plain.deletion_file.asdict()


def test_what_a_newer_writer_added_is_not_shown() -> None:
    deletion = DeletionFile(1, 2, DeletionFileType.ARROW, 3)
    newer = dataclasses.replace(deletion, unknown=b"\xfa\x3f\x01x")
    assert repr(newer) == repr(deletion)
    assert "unknown" not in repr(newer)
