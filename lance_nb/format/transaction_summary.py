"""Describe a transaction for users: read version, operation, one line of text, and JSON details.

Layout: a ``.txn`` file is a bare ``Transaction`` message; the inline copy in a manifest file is the
same bytes in a section. ``DESCRIBERS`` has one function per arm of ``Transaction.operation``; it
returns the line and a dict of JSON values.

Limits: lists show their first ``ITEMS_MAX`` items (the counts beside them are exact), texts their
first ``TEXT_MAX`` characters. An operation of a newer writer decodes to "Unknown", with the number
of its field.
Not supported: applying a transaction, or judging conflicts (lance_nb.transactions).
Source: message ``Transaction`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_nb._pb import file, table, transaction
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.wire import parse
from lance_nb.value_classes import dataclass

UNKNOWN = "Unknown"
MESSAGE_PROPERTY = "__lance_commit_message"
DROPPED_PROPERTY = "lance_nb.dropped"
"""Names what a change dropped besides what it says, see lance_nb.transactions.side_effects."""
ITEMS_MAX = 20
TEXT_MAX = 500
_FIRST_OPERATION = 100  # operations have field numbers from here on

Details = dict[str, Any]
Described = tuple[str, Details]
Op = transaction.Transaction


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    """The change that turned ``read_version`` (or a later one) into a new version.

    ``details`` holds JSON values only.
    """

    read_version: int
    uuid: str
    operation: str
    description: str
    details: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""

    @property
    def message(self) -> str | None:
        """The commit message, None if there is none."""
        return self.properties.get(MESSAGE_PROPERTY)


def summarize_transaction(data: bytes | memoryview, path: str = "") -> TransactionSummary:
    """Decode a serialized Transaction. Raises CorruptFileError."""
    message = parse(transaction.Transaction, data, path)
    arm = message.WhichOneof("operation")
    if arm is None:
        operation, (description, details) = UNKNOWN, _unknown(message)
    else:
        operation = operation_name(arm)
        description, details = DESCRIBERS[arm](getattr(message, arm))
    dropped = message.transaction_properties.get(DROPPED_PROPERTY)
    if dropped:
        description = f"{description}; dropped {shorten(dropped)}"
    return TransactionSummary(
        read_version=message.read_version,
        uuid=shorten(message.uuid),
        operation=operation,
        description=description,
        details=details,
        properties=dict(
            sorted(message.transaction_properties.items())
        ),  # values that programs read: whole
        tag=shorten(message.tag),
    )


def operation_name(arm: str) -> str:
    """Return the CamelCase name that pylance shows for an arm of the message."""
    return "".join(part.capitalize() for part in arm.split("_"))


OPERATION_TITLES: Mapping[str, str] = {
    "Append": "Rows added",
    "Delete": "Rows deleted",
    "Update": "Rows changed",
    "Overwrite": "All rows replaced",
    "Restore": "Earlier version restored",
    "Merge": "Columns added or cast",
    "Project": "Columns renamed or dropped",
    "DataReplacement": "Columns replaced",
    "DataOverlay": "Cells replaced",
    "Rewrite": "Compacted",
    "CreateIndex": "Index built or dropped",
    "UpdateConfig": "Settings changed",
    "ReserveFragments": "Fragment ids reserved",
    "UpdateBases": "Paths added",
    "UpdateMemWalState": "Settings changed",
    "Clone": "Branch begun",
    "Unknown": "Unknown change",
    "Damaged": "Manifest cannot be read",
}


def operation_title(operation: str | None) -> str:
    """Say what happened, with Lance's term behind it: "Compacted (Rewrite)"."""
    title = OPERATION_TITLES.get(operation or "")
    return f"{title} ({operation})" if title else operation or "operation not recorded"


def _unknown(message: transaction.Transaction) -> Described:
    unknown_fields = UnknownFieldSet(message)
    fields = {unknown_fields[index].field_number for index in range(len(unknown_fields))}
    numbers = sorted(number for number in fields if number >= _FIRST_OPERATION)
    if not numbers:
        return "no operation recorded", {}
    shown = ", ".join(map(str, numbers[:5]))
    return f"an operation this release does not know (field {shown})", {"fields": numbers[:5]}


# --- operations -----------------------------------------------------------------------------------


def shorten(text: str) -> str:
    """Return at most ``TEXT_MAX`` characters of a text."""
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."


def shorten_map(values: Any) -> dict[str, Any]:
    """Return the first items of a map of texts, sorted by key."""
    return {shorten(str(key)): shorten(str(values[key])) for key in sorted(values)[:ITEMS_MAX]}


def count_of(number: int, noun: str) -> str:
    """Return "1 row", "2 rows", "3,000 indices"."""
    if number == 1:
        return f"1 {noun}"
    plural = noun.removesuffix("ex") + "ices" if noun.endswith("ex") else f"{noun}s"
    return f"{number:,} {plural}"


def _fragments(fragments: Sequence[table.DataFragment]) -> list[Details]:
    return [
        {
            "id": fragment.id,
            "physical_rows": fragment.physical_rows,
            "num_deleted_rows": fragment.deletion_file.num_deleted_rows,
            "data_files": [shorten(file.path) for file in fragment.files[:ITEMS_MAX]],
        }
        for fragment in fragments[:ITEMS_MAX]
    ]


def _rows(fragments: Iterable[table.DataFragment]) -> int:
    return sum(fragment.physical_rows for fragment in fragments)


def _added(fragments: Sequence[table.DataFragment]) -> str:
    return f"{count_of(_rows(fragments), 'row')} in {count_of(len(fragments), 'fragment')}"


def _columns(fields: Sequence[file.Field]) -> list[str]:
    return [shorten(column.name) for column in fields if column.parent_id == -1]


def _numbers(values: Sequence[int]) -> list[int]:
    return list(values[:ITEMS_MAX])


def _append(op: Op.Append) -> Described:
    details = {"num_fragments": len(op.fragments), "num_rows": _rows(op.fragments)}
    return f"append {_added(op.fragments)}", {**details, "fragments": _fragments(op.fragments)}


def _delete(op: Op.Delete) -> Described:
    predicate = shorten(op.predicate)
    changed, dropped = len(op.updated_fragments), len(op.deleted_fragment_ids)
    where = f" where {predicate}" if predicate else ""
    line = f"delete{where}: {count_of(changed, 'fragment')} changed, {dropped:,} removed"
    return line, {
        "predicate": predicate,
        "num_updated_fragments": changed,
        "num_deleted_fragments": dropped,
        "updated_fragments": _fragments(op.updated_fragments),
        "deleted_fragment_ids": _numbers(op.deleted_fragment_ids),
    }


def _overwrite(op: Op.Overwrite) -> Described:
    columns = _columns(op.schema)
    line = f"write {_added(op.fragments)}, {count_of(len(columns), 'column')}"
    return line, {
        "num_fragments": len(op.fragments),
        "num_rows": _rows(op.fragments),
        "num_columns": len(columns),
        "columns": columns[:ITEMS_MAX],
        "config": shorten_map(op.config_upsert_values),
        "fragments": _fragments(op.fragments),
    }


def _indices(indices: Sequence[table.IndexMetadata]) -> list[Details]:
    decoded = [IndexMetadata.from_pb(index) for index in indices[:ITEMS_MAX]]
    return [
        {
            "uuid": index.uuid,
            "name": shorten(index.name),
            "kind": shorten(index.kind),
            "fields": _numbers(index.fields),
            "dataset_version": index.dataset_version,
        }
        for index in decoded
    ]


def _create_index(op: Op.CreateIndex) -> Described:
    new, removed = _indices(op.new_indices), _indices(op.removed_indices)
    parts = [
        f"{index['name']} ({index['kind']})" if index["kind"] else index["name"] for index in new
    ]
    names = ", ".join(dict.fromkeys(parts))
    removed_names = ", ".join(dict.fromkeys(index["name"] for index in removed))
    parts = [
        f"create index {names}" if names else "",
        f"remove index {removed_names}" if removed_names else "",
    ]
    # Rebuilding an index removes the old one of the same name, which is not worth mentioning.
    if new and {index["name"] for index in removed} <= {index["name"] for index in new}:
        parts = parts[:1]
    line = "; ".join(part for part in parts if part) or "change no index"
    return shorten(line), {"new_indices": new, "removed_indices": removed}


def _rewrite(op: Op.Rewrite) -> Described:
    old = [fragment for group in op.groups for fragment in group.old_fragments] + list(
        op.old_fragments
    )
    new = [fragment for group in op.groups for fragment in group.new_fragments] + list(
        op.new_fragments
    )
    line = f"compact {count_of(len(old), 'fragment')} into {len(new):,}"
    return line, {
        "num_groups": len(op.groups),
        "num_old_fragments": len(old),
        "num_new_fragments": len(new),
        "num_rows": _rows(new),
        "old_fragment_ids": [fragment.id for fragment in old[:ITEMS_MAX]],
        "new_fragments": _fragments(new),
        "num_rewritten_indices": len(op.rewritten_indices),
    }


def _merge(op: Op.Merge) -> Described:
    columns = _columns(op.schema)
    line = f"change columns: now {count_of(len(columns), 'column')}"
    return line, {
        "num_fragments": len(op.fragments),
        "num_columns": len(columns),
        "columns": columns[:ITEMS_MAX],
        "preserves_nullability": op.preserves_nullability,
    }


def _project(op: Op.Project) -> Described:
    columns = _columns(op.schema)
    line = f"keep or rename columns: now {count_of(len(columns), 'column')}"
    return line, {
        "num_columns": len(columns),
        "columns": columns[:ITEMS_MAX],
        "preserves_nullability": op.preserves_nullability,
    }


def _restore(op: Op.Restore) -> Described:
    return f"restore version {op.version}", {"version": op.version}


def _reserve_fragments(op: Op.ReserveFragments) -> Described:
    line = f"reserve {count_of(op.num_fragments, 'fragment id')}"
    return line, {"num_fragments": op.num_fragments}


def _update(op: Op.Update) -> Described:
    by_column = op.update_mode == Op.Update.REWRITE_COLUMNS and not op.new_fragments
    if by_column:
        text = f"{count_of(len(op.fields_modified), 'field')} rewritten"
    else:
        text = f"{count_of(_rows(op.new_fragments), 'row')} written"
    line = (
        f"update: {text}, {count_of(len(op.updated_fragments), 'fragment')} changed, "
        f"{len(op.removed_fragment_ids):,} removed"
    )
    return line, {
        "num_updated_fragments": len(op.updated_fragments),
        "num_new_fragments": len(op.new_fragments),
        "num_removed_fragments": len(op.removed_fragment_ids),
        "num_rows_written": _rows(op.new_fragments),
        "mode": "rewrite columns" if by_column else "rewrite rows",
        "fields_modified": _numbers(op.fields_modified),
        "updated_fragments": _fragments(op.updated_fragments),
        "new_fragments": _fragments(op.new_fragments),
        "removed_fragment_ids": _numbers(op.removed_fragment_ids),
    }


def _update_map(update: Op.UpdateMap) -> Details:
    upserts = {entry.key: entry.value for entry in update.update_entries if entry.HasField("value")}
    deletes = [entry.key for entry in update.update_entries if not entry.HasField("value")]
    return {
        "set": shorten_map(upserts),
        "delete": [shorten(key) for key in deletes[:ITEMS_MAX]],
        "replace": update.replace,
    }


def _update_config(op: Op.UpdateConfig) -> Described:
    details: Details = {}
    for name in ("config_updates", "table_metadata_updates", "schema_metadata_updates"):
        if op.HasField(name):
            details[name] = _update_map(getattr(op, name))
    if op.field_metadata_updates:
        ids = sorted(op.field_metadata_updates)[:ITEMS_MAX]
        details["field_metadata_updates"] = {
            str(field_id): _update_map(op.field_metadata_updates[field_id]) for field_id in ids
        }
    if op.upsert_values or op.delete_keys:
        deletes = [shorten(key) for key in op.delete_keys[:ITEMS_MAX]]
        details["config_updates"] = {
            "set": shorten_map(op.upsert_values),
            "delete": deletes,
            "replace": False,
        }
    if op.schema_metadata:
        details["schema_metadata"] = shorten_map(op.schema_metadata)
    changed = sorted(
        {
            key
            for detail in details.values()
            for key in (*detail.get("set", ()), *detail.get("delete", ()))
        }
    )
    line = "change settings" + (f": {', '.join(changed[:5])}" if changed else "")
    return shorten(line), details


def _data_replacement(op: Op.DataReplacement) -> Described:
    replaced = [
        {"fragment_id": replacement.fragment_id, "path": shorten(replacement.new_file.path)}
        for replacement in op.replacements[:ITEMS_MAX]
    ]
    line = f"replace data in {count_of(len(op.replacements), 'fragment')}"
    return line, {"num_replacements": len(op.replacements), "replacements": replaced}


def _update_mem_wal_state(op: Op.UpdateMemWalState) -> Described:
    number = len(op.compacted_sstables)
    return f"record {count_of(number, 'flushed table')}", {"num_compacted_sstables": number}


def _clone(op: Op.Clone) -> Described:
    kind = "shallow" if op.is_shallow else "deep"
    branch = op.branch_name if op.HasField("branch_name") else None
    source = f"version {op.ref_version}"
    if op.HasField("ref_name"):
        source = f"{source} of {shorten(op.ref_name)}"
    line = f"create branch {branch} from {source}" if branch else f"{kind} clone of {source}"
    return shorten(line), {
        "is_shallow": op.is_shallow,
        "ref_name": shorten(op.ref_name) if op.HasField("ref_name") else None,
        "ref_version": op.ref_version,
        "ref_path": shorten(op.ref_path),
        "branch_name": None if branch is None else shorten(branch),
    }


def _update_bases(op: Op.UpdateBases) -> Described:
    bases = [{"id": base.id, "path": shorten(base.path)} for base in op.new_bases[:ITEMS_MAX]]
    return f"add {count_of(len(op.new_bases), 'base path')}", {"new_bases": bases}


def _data_overlay(op: Op.DataOverlay) -> Described:
    line = f"overlay cells in {count_of(len(op.groups), 'fragment')}"
    return line, {"fragment_ids": [group.fragment_id for group in op.groups[:ITEMS_MAX]]}


DESCRIBERS: dict[str, Callable[[Any], Described]] = {
    "append": _append,
    "delete": _delete,
    "overwrite": _overwrite,
    "create_index": _create_index,
    "rewrite": _rewrite,
    "merge": _merge,
    "restore": _restore,
    "reserve_fragments": _reserve_fragments,
    "update": _update,
    "project": _project,
    "update_config": _update_config,
    "data_replacement": _data_replacement,
    "update_mem_wal_state": _update_mem_wal_state,
    "clone": _clone,
    "update_bases": _update_bases,
    "data_overlay": _data_overlay,
}
