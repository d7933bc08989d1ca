"""The record that a merge leaves in the properties of its transaction, for the merges that follow.

==============================  ===================================================================
property                        value
==============================  ===================================================================
lance_nb.merge.kind             "merge", "cherry-pick" or "revert"
lance_nb.merge.source_branch    branch of the source, "main" for main
lance_nb.merge.source_id        identity of that branch (two branches of one name differ in it)
lance_nb.merge.source_version   version of it that was merged, picked or reverted
lance_nb.merge.base_branch      branch of the base
lance_nb.merge.base_version     version of it that both sides started from
lance_nb.merge.target_version   version that the merge was done to
lance_nb.merge.strategy         "fast-forward" or "replay"
lance_nb.merge.on_conflict      how conflicts were decided, if there were any
lance_nb.merge.choices          choices for cells in conflict as a JSON list, see choices.py
lance_nb.merge.key              key columns of a merge by value as a JSON list, [] for row ids
lance_nb.merge.fields           ids of fields of the source that have another id in the version that
                                was made, as a JSON object; -1: the field is not in it
lance_nb.merge.copied           "true" if data files were copied
lance_nb.merge.pin              tag on the merged version, which keeps the files that are read there
lance_nb.merge.transactions     ids of the transactions that were merged, with commas between
==============================  ===================================================================

A clean-up removes transactions, so what the next merge must know stands in the configuration too,
which every later version inherits: ``lance_nb.merged_from.ID`` (the identity of the source) holds
the latest merge of that source as JSON: version, target and its version, base, key and fields.

Limits: at most ``IDS_MAX`` transactions and ``CHOICES_MAX`` choices are listed; more than
``FIELDS_MAX`` fields are not, and the next merge knows them by their names. Writers that do not
know these properties keep them in their versions and write none; what they say is believed as far
as the versions it names exist.
Source: field ``transaction_properties`` of Transaction; the names are our own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lance_nb.value_classes import dataclass

MAIN_ID = "main"

PREFIX = "lance_nb.merge."
MARK_PREFIX = "lance_nb.merged_from."
IDS_MAX = 100
CHOICES_MAX = 1000
FIELDS_MAX = 1000
LEFT_OUT = -1
MERGE, PICK, REVERT = "merge", "cherry-pick", "revert"
UP_TO_DATE, FAST_FORWARD, REPLAY = "up-to-date", "fast-forward", "replay"
MAIN = "main"
_DIGITS_MAX = 20


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """One merge, pick or revert, as its transaction records it.

    ``fields``: ids of the source -> ids in the version that was made, where they differ, and
    ``LEFT_OUT`` for fields that it does not have. None: not recorded.
    """

    kind: str
    source_branch: str | None
    source_id: str
    source_version: int
    base_branch: str | None
    base_version: int
    target_version: int
    strategy: str
    on_conflict: str | None = None
    is_copied: bool = False
    pin: str | None = None
    transactions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    key: tuple[str, ...] | None = None
    fields: Mapping[int, int] | None = None

    def properties(self) -> dict[str, str]:
        """Return the properties of the transaction."""
        values = {
            "kind": self.kind,
            "source_branch": self.source_branch or MAIN,
            "source_id": self.source_id,
            "source_version": str(self.source_version),
            "base_branch": self.base_branch or MAIN,
            "base_version": str(self.base_version),
            "target_version": str(self.target_version),
            "strategy": self.strategy,
        }
        if self.on_conflict is not None:
            values["on_conflict"] = self.on_conflict
        if self.is_copied:
            values["copied"] = "true"
        if self.pin is not None:
            values["pin"] = self.pin
        if self.transactions:
            values["transactions"] = ",".join(self.transactions[:IDS_MAX])
        if self.choices:
            values["choices"] = json.dumps(self.choices[:CHOICES_MAX])
        if self.key is not None:
            values["key"] = json.dumps(self.key)
        if self.fields is not None and len(self.fields) <= FIELDS_MAX:
            values["fields"] = json.dumps(
                {str(field): place for field, place in self.fields.items()}
            )
        return {PREFIX + name: value for name, value in values.items()}


def record_of(properties: Mapping[str, str]) -> MergeRecord | None:
    """Read the record of a merge from properties; None if there is none that makes sense."""
    values = {
        name.removeprefix(PREFIX): value
        for name, value in properties.items()
        if name.startswith(PREFIX)
    }
    numbers = [
        _number(values.get(name, ""))
        for name in ("source_version", "base_version", "target_version")
    ]
    if values.get("kind") not in (MERGE, PICK, REVERT) or None in numbers:
        return None
    source, base, target = (number or 0 for number in numbers)
    return MergeRecord(
        kind=values["kind"],
        source_branch=_branch(values.get("source_branch", MAIN)),
        source_id=values.get("source_id", ""),
        source_version=source,
        base_branch=_branch(values.get("base_branch", MAIN)),
        base_version=base,
        target_version=target,
        strategy=values.get("strategy", ""),
        on_conflict=values.get("on_conflict"),
        is_copied=values.get("copied") == "true",
        pin=values.get("pin"),
        transactions=_ids(values.get("transactions", "")),
        choices=_texts(values.get("choices", "[]")),
        key=_texts(values["key"]) if "key" in values else None,
        fields=_numbers(values["fields"]) if "fields" in values else None,
    )


def mark_of(record: MergeRecord) -> dict[str, str]:
    """Return the entry of the configuration that keeps a merge known when its version is gone."""
    if record.kind != MERGE:
        return {}
    values = record.properties()
    names = ("source_branch", "source_version", "base_branch", "base_version", "target_version")
    mark = {name: values[PREFIX + name] for name in names}
    optional = {name: values.get(PREFIX + name) for name in ("key", "fields")}
    mark.update({name: value for name, value in optional.items() if value is not None})
    return {MARK_PREFIX + record.source_id: json.dumps(mark, sort_keys=True)}


def marks_in(config: Mapping[str, str]) -> tuple[MergeRecord, ...]:
    """Read the merges that a configuration names; what makes no sense is left out."""
    records = []
    for name, text in config.items():
        if not name.startswith(MARK_PREFIX):
            continue
        try:
            mark = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(mark, dict) or not all(isinstance(value, str) for value in mark.values()):
            continue
        values = {"kind": MERGE, "source_id": name.removeprefix(MARK_PREFIX), **mark}
        record = record_of({PREFIX + key: value for key, value in values.items()})
        if record is not None:
            records.append(record)
    return tuple(records)


def without_marks(config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration without the merges that it names."""
    return {name: value for name, value in config.items() if not name.startswith(MARK_PREFIX)}


def only_marks(config: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of a configuration that name merges."""
    return {name: value for name, value in config.items() if name.startswith(MARK_PREFIX)}


def _texts(text: str) -> tuple[str, ...]:
    try:
        texts = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(texts, list):
        return ()
    return tuple(text for text in texts[:CHOICES_MAX] if isinstance(text, str))


def _numbers(text: str) -> Mapping[int, int] | None:
    try:
        numbers = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(numbers, dict) or len(numbers) > FIELDS_MAX:
        return None
    pairs = {_number(name): value for name, value in numbers.items()}
    if any(type(value) is not int or value < LEFT_OUT for value in pairs.values()):
        return None
    places = [value for value in pairs.values() if value != LEFT_OUT]
    if len(set(places)) < len(places):
        return None
    return {name: value for name, value in pairs.items() if name is not None}


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return int(text) if is_number else None


def _branch(name: str) -> str | None:
    return None if name == MAIN else name


def _ids(text: str) -> tuple[str, ...]:
    parts: Sequence[str] = text.split(",") if text else ()
    return tuple(parts[:IDS_MAX])


def identity_of(name: str, identifier: Sequence[tuple[int, str]], create_at: int) -> str:
    """Return what tells a branch from others of its name."""
    return identifier[-1][1] if identifier else f"{name}@{create_at}"
