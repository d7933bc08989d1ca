"""Summaries of transactions: every operation, bounded, JSON only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lance_nb._pb import file, table
from lance_nb._pb import transaction as pb
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.transaction_summary import (
    DESCRIBERS,
    ITEMS_MAX,
    TEXT_MAX,
    count_of,
    operation_name,
    shorten,
    shorten_map,
    summarize_transaction,
)
from tests.support.manifests import flipped, fragment

Op = pb.Transaction
FRAGMENTS = [fragment(0, 100).to_pb(), fragment(1, 50, 3).to_pb()]
SCHEMA = [file.Field(id=0, parent_id=-1, name="a"), file.Field(id=1, parent_id=0, name="b")]
INDEX = table.IndexMetadata(
    uuid=table.UUID(uuid=bytes(16)), name="a_idx", fields=[0], dataset_version=3
)
INDEX.index_details.type_url = "/lance.table.BTreeIndexDetails"
# Releases before index details left the kind out.
WITHOUT_KIND = table.IndexMetadata(uuid=INDEX.uuid, name="v_idx", fields=[1], dataset_version=3)
SET_A = Op.UpdateMap(
    update_entries=[Op.UpdateMapEntry(key="a", value="1"), Op.UpdateMapEntry(key="b")]
)

CASES = [
    (
        Op(delete=Op.Delete(updated_fragments=FRAGMENTS[1:], predicate="a < 5")),
        "delete where a < 5: 1 fragment changed, 0 removed",
    ),
    (Op(delete=Op.Delete(deleted_fragment_ids=[3, 4])), "delete: 0 fragments changed, 2 removed"),
    (
        Op(overwrite=Op.Overwrite(fragments=FRAGMENTS[:1], schema=SCHEMA)),
        "write 100 rows in 1 fragment, 1 column",
    ),
    (Op(create_index=Op.CreateIndex(new_indices=[INDEX])), "create index a_idx (BTree)"),
    (
        Op(create_index=Op.CreateIndex(new_indices=[WITHOUT_KIND, INDEX])),
        "create index v_idx, a_idx (BTree)",
    ),
    (Op(create_index=Op.CreateIndex(removed_indices=[INDEX])), "remove index a_idx"),
    (
        Op(create_index=Op.CreateIndex(new_indices=[INDEX], removed_indices=[INDEX])),
        "create index a_idx (BTree)",
    ),
    (
        Op(
            rewrite=Op.Rewrite(
                groups=[
                    Op.Rewrite.RewriteGroup(old_fragments=FRAGMENTS, new_fragments=FRAGMENTS[:1])
                ]
            )
        ),
        "compact 2 fragments into 1",
    ),
    (Op(restore=Op.Restore(version=3)), "restore version 3"),
    (
        Op(reserve_fragments=Op.ReserveFragments(num_fragments=2)),
        "reserve 2 fragment ids",
    ),
    (
        Op(update=Op.Update(updated_fragments=FRAGMENTS[1:], new_fragments=FRAGMENTS[:1])),
        "update: 100 rows written, 1 fragment changed, 0 removed",
    ),
    (
        Op(
            update=Op.Update(
                updated_fragments=FRAGMENTS,
                fields_modified=[1],
                update_mode=Op.Update.REWRITE_COLUMNS,
            )
        ),
        "update: 1 field rewritten, 2 fragments changed, 0 removed",
    ),
    (
        Op(
            update_config=Op.UpdateConfig(
                config_updates=SET_A, field_metadata_updates={0: Op.UpdateMap(replace=True)}
            )
        ),
        "change settings: a, b",
    ),
    (Op(update_config=Op.UpdateConfig(upsert_values={"old": "1"})), "change settings: old"),
    (Op(update_mem_wal_state=Op.UpdateMemWalState()), "record 0 flushed tables"),
    (
        Op(clone=Op.Clone(is_shallow=True, ref_version=2, ref_path="/r", branch_name="dev")),
        "create branch dev from version 2",
    ),
    (Op(clone=Op.Clone(ref_version=2, ref_name="side")), "deep clone of version 2 of side"),
    (
        Op(update_bases=Op.UpdateBases(new_bases=[table.BasePath(id=1, path="/x")])),
        "add 1 base path",
    ),
]

FIRST = {"id": 0, "physical_rows": 100, "num_deleted_rows": 0, "data_files": ["0-0.lance"]}
SECOND = {"id": 1, "physical_rows": 50, "num_deleted_rows": 3, "data_files": ["1-0.lance"]}
BY_A = {
    "uuid": "00000000-0000-0000-0000-000000000000", "name": "a_idx", "kind": "BTree",
    "fields": [0], "dataset_version": 3,
}  # fmt: skip
COLUMN_C = file.Field(id=2, parent_id=-1, name="c")
OTHER = table.IndexMetadata(uuid=table.UUID(uuid=bytes(15) + b"\1"), name="b_idx", fields=[1, 2])

DETAILS: list[tuple[str, Any, str, dict[str, Any]]] = [
    (
        "append", Op.Append(fragments=FRAGMENTS), "append 150 rows in 2 fragments",
        {"num_fragments": 2, "num_rows": 150, "fragments": [FIRST, SECOND]},
    ),
    (
        "delete",
        Op.Delete(updated_fragments=FRAGMENTS[1:], deleted_fragment_ids=[3, 4], predicate="a < 5"),
        "delete where a < 5: 1 fragment changed, 2 removed",
        {"predicate": "a < 5", "num_updated_fragments": 1, "num_deleted_fragments": 2,
         "updated_fragments": [SECOND], "deleted_fragment_ids": [3, 4]},
    ),
    (
        "overwrite",
        Op.Overwrite(fragments=FRAGMENTS, schema=[*SCHEMA, COLUMN_C],
                     config_upsert_values={"k": "v"}),
        "write 150 rows in 2 fragments, 2 columns",
        {"num_fragments": 2, "num_rows": 150, "num_columns": 2, "columns": ["a", "c"],
         "config": {"k": "v"}, "fragments": [FIRST, SECOND]},
    ),
    (
        "create_index", Op.CreateIndex(new_indices=[INDEX, INDEX], removed_indices=[OTHER]),
        "create index a_idx (BTree); remove index b_idx",
        {"new_indices": [BY_A, BY_A],
         "removed_indices": [{"uuid": "00000000-0000-0000-0000-000000000001", "name": "b_idx",
                              "kind": "", "fields": [1, 2], "dataset_version": 0}]},
    ),
    (
        "create_index", Op.CreateIndex(), "change no index",
        {"new_indices": [], "removed_indices": []},
    ),
    (
        "rewrite",
        Op.Rewrite(
            groups=[Op.Rewrite.RewriteGroup(old_fragments=FRAGMENTS, new_fragments=FRAGMENTS[:1])],
            old_fragments=FRAGMENTS[1:], new_fragments=FRAGMENTS[1:],
            rewritten_indices=[Op.Rewrite.RewrittenIndex()],
        ),
        "compact 3 fragments into 2",
        {"num_groups": 1, "num_old_fragments": 3, "num_new_fragments": 2, "num_rows": 150,
         "old_fragment_ids": [0, 1, 1], "new_fragments": [FIRST, SECOND],
         "num_rewritten_indices": 1},
    ),
    (
        "merge", Op.Merge(fragments=FRAGMENTS, schema=SCHEMA, preserves_nullability=True),
        "change columns: now 1 column",
        {"num_fragments": 2, "num_columns": 1, "columns": ["a"], "preserves_nullability": True},
    ),
    (
        "update",
        Op.Update(updated_fragments=FRAGMENTS[1:], new_fragments=FRAGMENTS[:1],
                  removed_fragment_ids=[7, 8], fields_modified=[1],
                  update_mode=Op.Update.REWRITE_COLUMNS),
        "update: 100 rows written, 1 fragment changed, 2 removed",
        {"num_updated_fragments": 1, "num_new_fragments": 1, "num_removed_fragments": 2,
         "num_rows_written": 100, "mode": "rewrite rows", "fields_modified": [1],
         "updated_fragments": [SECOND], "new_fragments": [FIRST], "removed_fragment_ids": [7, 8]},
    ),
    (
        "update",
        Op.Update(updated_fragments=FRAGMENTS, fields_modified=[1, 2],
                  update_mode=Op.Update.REWRITE_COLUMNS),
        "update: 2 fields rewritten, 2 fragments changed, 0 removed",
        {"num_updated_fragments": 2, "num_new_fragments": 0, "num_removed_fragments": 0,
         "num_rows_written": 0, "mode": "rewrite columns", "fields_modified": [1, 2],
         "updated_fragments": [FIRST, SECOND], "new_fragments": [], "removed_fragment_ids": []},
    ),
    (
        "project", Op.Project(schema=SCHEMA, preserves_nullability=True),
        "keep or rename columns: now 1 column",
        {"num_columns": 1, "columns": ["a"], "preserves_nullability": True},
    ),
    (
        "update_config",
        Op.UpdateConfig(config_updates=SET_A, table_metadata_updates=SET_A,
                        field_metadata_updates={4: SET_A, 3: Op.UpdateMap(replace=True)}),
        "change settings: a, b",
        {"config_updates": {"set": {"a": "1"}, "delete": ["b"], "replace": False},
         "table_metadata_updates": {"set": {"a": "1"}, "delete": ["b"], "replace": False},
         "field_metadata_updates": {"3": {"set": {}, "delete": [], "replace": True},
                                    "4": {"set": {"a": "1"}, "delete": ["b"], "replace": False}}},
    ),
    (
        "update_config",
        Op.UpdateConfig(delete_keys=["f", "e", "d"], upsert_values={"c": "1", "b": "2", "a": "3"}),
        "change settings: a, b, c, d, e",
        {"config_updates": {"set": {"a": "3", "b": "2", "c": "1"}, "delete": ["f", "e", "d"],
                            "replace": False}},
    ),
    ("update_config", Op.UpdateConfig(), "change settings", {}),
    (
        "update_config", Op.UpdateConfig(schema_metadata={"k": "v"}), "change settings",
        {"schema_metadata": {"k": "v"}},
    ),
    (
        "data_replacement",
        Op.DataReplacement(replacements=[
            Op.DataReplacementGroup(fragment_id=4, new_file=table.DataFile(path="x.lance")),
        ]),
        "replace data in 1 fragment",
        {"num_replacements": 1, "replacements": [{"fragment_id": 4, "path": "x.lance"}]},
    ),
    (
        "clone", Op.Clone(is_shallow=True, ref_version=2, ref_name="", branch_name=""),
        "shallow clone of version 2 of ",
        {"is_shallow": True, "ref_name": "", "ref_version": 2, "ref_path": "", "branch_name": ""},
    ),
    (
        "clone", Op.Clone(ref_version=2, ref_path="/r", ref_name="side", branch_name="dev"),
        "create branch dev from version 2 of side",
        {"is_shallow": False, "ref_name": "side", "ref_version": 2, "ref_path": "/r",
         "branch_name": "dev"},
    ),
    (
        "update_bases", Op.UpdateBases(new_bases=[table.BasePath(id=1, path="/x"),
                                                  table.BasePath(id=2, path="/y")]),
        "add 2 base paths", {"new_bases": [{"id": 1, "path": "/x"}, {"id": 2, "path": "/y"}]},
    ),
    (
        "data_overlay", Op.DataOverlay(groups=[Op.DataOverlayGroup(fragment_id=5)]),
        "overlay cells in 1 fragment", {"fragment_ids": [5]},
    ),
]  # fmt: skip
ALL = [*CASES, *((Op(**{arm: operation}), line) for arm, operation, line, _ in DETAILS)]


@pytest.mark.parametrize(("message", "line"), ALL)
def test_an_operation_is_one_line_and_plain_data(message: pb.Transaction, line: str):
    summary = summarize_transaction(message.SerializeToString())
    assert summary.description == line
    assert summary.operation == operation_name(message.WhichOneof("operation"))
    assert json.loads(json.dumps(summary.details)) == summary.details


def test_every_operation_of_the_message_has_a_describer_and_a_case():
    arms = {one.name for one in Op.DESCRIPTOR.oneofs_by_name["operation"].fields}
    assert set(DESCRIBERS) == arms == {message.WhichOneof("operation") for message, _ in ALL}
    assert operation_name("update_mem_wal_state") == "UpdateMemWalState"


def test_the_envelope_is_read():
    message = Op(read_version=6, uuid="u", tag="t", append=Op.Append())
    message.transaction_properties["__lance_commit_message"] = "why"
    summary = summarize_transaction(message.SerializeToString())
    assert (summary.read_version, summary.uuid, summary.tag) == (6, "u", "t")
    assert summary.message == "why"
    assert summarize_transaction(b"").message is None


def test_operations_of_newer_writers_are_unknown_with_their_number():
    summary = summarize_transaction(b"\x08\x06" + b"\xa2\x07\x00")  # field 116
    assert (summary.operation, summary.read_version) == ("Unknown", 6)
    assert summary.details == {"fields": [116]}
    assert "116" in summary.description
    assert summarize_transaction(b"\x08\x06").description == "no operation recorded"


def test_details_are_bounded_and_counts_exact():
    many = [fragment(number).to_pb() for number in range(5000)]
    message = Op(
        append=Op.Append(fragments=many),
        uuid="u" * 10_000,
    )
    summary = summarize_transaction(message.SerializeToString())
    assert len(summary.details["fragments"]) == ITEMS_MAX
    assert summary.details["num_fragments"] == 5000
    assert len(json.dumps([summary.details, summary.uuid])) < 40_000
    long = Op(delete=Op.Delete(predicate="x" * 100_000))
    assert len(summarize_transaction(long.SerializeToString()).description) < 1000


def test_properties_are_whole():
    properties = {f"key {n:03}": "x" * 10_000 for n in range(100)}
    data = Op(transaction_properties=properties).SerializeToString()
    assert dict(summarize_transaction(data).properties) == properties


def test_plurals():
    assert [count_of(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert count_of(2, "index") == "2 indices"


def test_bytes_that_are_no_transaction_are_damage():
    with pytest.raises(CorruptFileError, match="Transaction"):
        summarize_transaction(b"\x0a\xff", "x.txn")


def test_any_damage_is_a_lance_error_or_a_summary():
    for message, line in ALL:
        for what, broken in flipped(message.SerializeToString() + b"\x08\x01", 60, seed=1):
            try:
                json.dumps(summarize_transaction(broken).details)
            except LanceError:
                continue
            except Exception as error:
                text = f"{line}: {what} escaped as {type(error).__name__}"
                raise AssertionError(text) from error


@pytest.mark.parametrize(
    ("arm", "operation", "line", "details"),
    DETAILS,
    ids=[f"{number}-{arm}" for number, (arm, *_) in enumerate(DETAILS)],
)
def test_every_number_is_described(
    arm: str, operation: Any, line: str, details: dict[str, Any]
) -> None:
    assert DESCRIBERS[arm](operation) == (line, details)


@pytest.mark.parametrize("length", [TEXT_MAX - 1, TEXT_MAX, TEXT_MAX + 1, 2 * TEXT_MAX])
def test_texts_have_at_most_so_many_characters(length: int) -> None:
    text = "x" * length
    assert shorten(text) == (text if length <= TEXT_MAX else "x" * (TEXT_MAX - 3) + "...")
    assert len(shorten(text)) <= TEXT_MAX
    assert shorten_map({text: text}) == {shorten(text): shorten(text)}


def test_maps_show_their_first_keys() -> None:
    many = {f"{n:05}": "v" for n in reversed(range(ITEMS_MAX + 5))}
    assert list(shorten_map(many)) == [f"{n:05}" for n in range(ITEMS_MAX)]


def test_lists_show_their_first_items_and_exact_counts() -> None:
    many = [fragment(number, 2).to_pb() for number in range(ITEMS_MAX + 5)]
    _, details = DESCRIBERS["update"](
        Op.Update(
            updated_fragments=many, new_fragments=many, removed_fragment_ids=range(ITEMS_MAX + 5),
            fields_modified=range(ITEMS_MAX + 5),
        )
    )  # fmt: skip
    for name in ("updated_fragments", "new_fragments", "removed_fragment_ids", "fields_modified"):
        assert len(details[name]) == ITEMS_MAX
    assert details["num_updated_fragments"] == details["num_removed_fragments"] == ITEMS_MAX + 5
    assert details["num_rows_written"] == 2 * (ITEMS_MAX + 5)


def test_operations_of_newer_writers_name_at_most_five_fields() -> None:
    fields = b"".join(
        bytes([(number << 3) & 0x7F | 0x80, number << 3 >> 7, 0]) for number in range(120, 128)
    )
    summary = summarize_transaction(fields)
    assert summary.details == {"fields": [120, 121, 122, 123, 124]}
    assert summary.description.endswith("(field 120, 121, 122, 123, 124)")
