"""Describe a dataset in its header card, and one version in detail.

Layout of ``DatasetCard.to_json``: ``name``, ``uri``, ``branch``, ``version``, ``label``
("main:42"), ``tags`` of this version, ``latest`` (newest version of the branch), ``facts``
(``{key, value, title}`` each).

Layout of ``VersionDetail.to_json``: ``label``, ``branch``, ``version``, ``time``, ``time_ms``,
``operation``, ``description`` (one line), ``message``, ``tags``, ``counts`` ``[{label, value}]``,
``properties`` ``[{label, value}]``, ``transaction`` ``[{label, value}]`` (the decoded operation,
flattened), ``schema`` (see ``schema_tree``).

Limits: ``MAX_TAGS`` tags on the card; ``MAX_FACTS`` entries of each list of the detail, values are
one line. Reads metadata only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from lance_nb.errors import LanceError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.schema_tree import SchemaTree, schema_tree
from lance_nb.explorer.models.source import Source, TransactionInfo, VersionInfo

MAX_FACTS = 40
_MAX_DEPTH = 6
_VALUE_CHARS = 300
MAX_TAGS = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """A label and its value, both text."""

    label: str
    value: str

    def to_json(self) -> dict[str, str]:
        """Return the entry as JSON-able values."""
        return {"label": self.label, "value": self.value}


@dataclass(frozen=True, slots=True)
class VersionDetail:
    """Everything the detail pane shows of one version."""

    label: str
    branch: str | None
    version: int
    time: str
    time_ms: int | None
    operation: str
    description: str
    message: str
    tags: tuple[str, ...]
    counts: tuple[Entry, ...]
    properties: tuple[Entry, ...]
    transaction: tuple[Entry, ...]
    schema: SchemaTree

    def to_json(self) -> dict[str, Any]:
        """Return the detail as JSON-able values."""
        return {
            "label": self.label,
            "branch": self.branch,
            "version": self.version,
            "time": self.time,
            "time_ms": self.time_ms,
            "operation": self.operation,
            "description": self.description,
            "message": self.message,
            "tags": list(self.tags),
            "counts": [entry.to_json() for entry in self.counts],
            "properties": [entry.to_json() for entry in self.properties],
            "transaction": [entry.to_json() for entry in self.transaction],
            "schema": self.schema.to_json(),
        }


def version_detail(dataset: Source) -> VersionDetail:
    """Describe the version that ``dataset`` is at."""
    info = dataset.version_info(dataset.version)
    transaction, problem = _transaction(dataset)
    return VersionDetail(
        label=text.ref_label(dataset.branch, info.version),
        branch=None if dataset.branch is None else text.name(dataset.branch),
        version=info.version,
        time=text.moment(info.timestamp),
        time_ms=text.milliseconds(info.timestamp),
        operation=text.name(info.operation or "operation not recorded"),
        description=problem or ("" if transaction is None else text.line(transaction.description)),
        message=text.line(info.message or ""),
        tags=tuple(text.name(tag) for tag in info.tags[:MAX_FACTS]),
        counts=_counts(info),
        properties=tuple(entries(info.properties)),
        transaction=() if transaction is None else tuple(_transaction_entries(transaction)),
        schema=schema_tree(dataset.schema),
    )


def _transaction(dataset: Source) -> tuple[TransactionInfo | None, str]:
    """Return the decoded transaction, or why it cannot be shown."""
    try:
        return dataset.transaction(dataset.version), ""
    except LanceError as error:
        return None, text.line(f"The transaction cannot be read: {error}")


def _counts(info: VersionInfo) -> tuple[Entry, ...]:
    size = "unknown" if info.size_bytes is None else text.size(info.size_bytes)
    rows, deleted = (
        "not recorded" if count is None else text.count(count)
        for count in (info.num_rows, info.num_deleted_rows)
    )
    return (
        Entry("rows", rows),
        Entry("deleted rows", deleted),
        Entry("fragments", text.count(info.num_fragments)),
        Entry("data files", text.count(info.num_data_files)),
        Entry("deletion files", text.count(info.num_deletion_files)),
        Entry("size", size),
    )


def _transaction_entries(transaction: TransactionInfo) -> Iterator[Entry]:
    yield Entry("read version", str(transaction.read_version))
    yield Entry("transaction", text.name(transaction.uuid))
    yield from entries(transaction.details)


def entries(values: Mapping[str, Any]) -> Iterator[Entry]:
    """Flatten nested values to dotted labels, at most ``MAX_FACTS`` of them."""
    leaves = _leaves("", values, 0) if values else iter(())
    for label, value in islice(leaves, MAX_FACTS):
        yield Entry(text.line(label, 160), text.line(value, _VALUE_CHARS))


def _leaves(label: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{label}.{key}" if label else str(key), inner, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(value, (list, tuple)) and _is_deep(value):
        for at, inner in enumerate(value):
            yield from _leaves(f"{label}[{at}]", inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        shown = ", ".join(text.cut(str(item), 40) for item in value[:20])
        more = f", {text.ELLIPSIS} {len(value)} items" if len(value) > 20 else ""
        yield label, f"{shown}{more}" or "none"
    else:
        yield label, "none" if value is None or value == {} else text.cut(str(value), 400)


def _is_deep(value: list[Any] | tuple[Any, ...]) -> bool:
    return bool(value) and isinstance(value[0], (Mapping, list, tuple))


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure: ``value`` is what the eye reads, ``title`` the sentence behind it."""

    key: str
    value: str
    title: str


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """The header card of one version of a dataset."""

    name: str
    uri: str
    branch: str | None
    version: int
    label: str
    latest: int
    tags: tuple[str, ...]
    facts: tuple[Fact, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the card as JSON-able values."""
        return {
            "name": self.name,
            "uri": self.uri,
            "branch": self.branch,
            "version": self.version,
            "label": self.label,
            "latest": self.latest,
            "tags": list(self.tags),
            "facts": [asdict(fact) for fact in self.facts],
        }


def dataset_card(dataset: Source, latest: int | None = None) -> DatasetCard:
    """Read the card of ``dataset`` at its version; ``latest`` saves a listing when it is known."""
    info = dataset.version_info(dataset.version)
    return DatasetCard(
        name=text.name(dataset.name),
        uri=text.line(dataset.uri),
        branch=None if dataset.branch is None else text.name(dataset.branch),
        version=dataset.version,
        label=text.ref_label(dataset.branch, dataset.version),
        latest=dataset.latest_version if latest is None else latest,
        tags=tuple(text.name(tag) for tag in info.tags[:MAX_TAGS]),
        facts=_card_facts(dataset),
    )


def _card_facts(dataset: Source) -> tuple[Fact, ...]:
    stats = dataset.stats()
    physical = stats.num_rows + stats.num_deleted_rows
    deleted = text.share(stats.num_deleted_rows, physical)
    num_columns = len(dataset.schema)
    facts = [
        Fact("rows", text.count(stats.num_rows), f"{text.count(stats.num_rows)} live rows"),
        Fact("columns", text.count(num_columns), "columns at the top level of the schema"),
        Fact(
            "size",
            "unknown" if stats.size_bytes is None else text.size(stats.size_bytes),
            "bytes of the data files that this version uses",
        ),
        Fact(
            "fragments",
            text.count(stats.num_fragments),
            f"{text.plural(stats.num_fragments, 'fragment')} "
            f"in {text.plural(stats.num_data_files, 'data file')}",
        ),
        Fact(
            "deleted",
            deleted,
            f"{text.count(stats.num_deleted_rows)} of {text.count(physical)} stored rows "
            "are marked deleted",
        ),
        Fact("format", text.name(dataset.data_storage_version), "version of the data file format"),
    ]
    return tuple(facts)
