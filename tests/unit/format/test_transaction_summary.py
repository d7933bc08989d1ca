"""Transactions told to people: every operation, bounded, JSON only."""

from __future__ import annotations

import json

import pytest

from lance_nb._pb import file, table
from lance_nb._pb import transaction as pb
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.operation_details import DESCRIBERS, ITEMS_MAX, count_of
from lance_nb.format.transaction_summary import (
    cloned_place,
    operation_name,
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
    (Op(append=Op.Append(fragments=FRAGMENTS)), "append 150 rows in 2 fragments"),
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
    (Op(merge=Op.Merge(fragments=FRAGMENTS, schema=SCHEMA)), "change columns: now 1 column"),
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
    (Op(project=Op.Project(schema=SCHEMA)), "keep or rename columns: now 1 column"),
    (
        Op(
            update_config=Op.UpdateConfig(
                config_updates=SET_A, field_metadata_updates={0: Op.UpdateMap(replace=True)}
            )
        ),
        "change settings: a, b",
    ),
    (Op(update_config=Op.UpdateConfig(upsert_values={"old": "1"})), "change settings: old"),
    (
        Op(
            data_replacement=Op.DataReplacement(
                replacements=[Op.DataReplacementGroup(fragment_id=4)]
            )
        ),
        "replace data in 1 fragment",
    ),
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
    (
        Op(data_overlay=Op.DataOverlay(groups=[Op.DataOverlayGroup(fragment_id=1)])),
        "overlay cells in 1 fragment",
    ),
]


@pytest.mark.parametrize(("message", "line"), CASES, ids=[line for _, line in CASES])
def test_an_operation_is_one_line_and_plain_data(message: pb.Transaction, line: str):
    summary = summarize_transaction(message.SerializeToString())
    assert summary.description == line
    assert summary.operation == operation_name(message.WhichOneof("operation"))
    assert json.loads(json.dumps(summary.details)) == summary.details


def test_every_operation_of_the_message_has_a_describer_and_a_case():
    arms = {one.name for one in Op.DESCRIPTOR.oneofs_by_name["operation"].fields}
    assert set(DESCRIBERS) == arms == {message.WhichOneof("operation") for message, _ in CASES}
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
        transaction_properties={f"key {n}": "x" * 10_000 for n in range(1000)},
    )
    summary = summarize_transaction(message.SerializeToString())
    assert len(summary.details["fragments"]) == ITEMS_MAX
    assert summary.details["num_fragments"] == 5000
    assert len(json.dumps([summary.details, summary.properties, summary.uuid])) < 40_000
    long = Op(delete=Op.Delete(predicate="x" * 100_000))
    assert len(summarize_transaction(long.SerializeToString()).description) < 1000


def test_plurals():
    assert [count_of(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert count_of(2, "index") == "2 indices"


def test_bytes_that_are_no_transaction_are_damage():
    with pytest.raises(CorruptFileError, match="Transaction"):
        summarize_transaction(b"\x0a\xff", "x.txn")


def test_any_damage_is_a_lance_error_or_a_summary():
    for message, line in CASES:
        for what, broken in flipped(message.SerializeToString() + b"\x08\x01", 60, seed=1):
            try:
                json.dumps(summarize_transaction(broken).details)
            except LanceError:
                continue
            except Exception as error:
                text = f"{line}: {what} escaped as {type(error).__name__}"
                raise AssertionError(text) from error


def test_a_clone_names_the_folder_that_it_refers_to():
    clone = Op(clone=Op.Clone(is_shallow=True, ref_path="/somewhere", ref_version=3))
    assert cloned_place(clone.SerializeToString()) == "/somewhere"
    assert cloned_place(Op(append=Op.Append()).SerializeToString()) is None
    assert cloned_place(b"") is None
    with pytest.raises(CorruptFileError):
        cloned_place(b"\xff", "x")
