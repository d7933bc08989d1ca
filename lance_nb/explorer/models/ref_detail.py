"""One branch or tag in detail: figures, what stands on it, what was written about it.

Layout of ``to_json``: ``kind``, ``name``, ``label``, ``place`` (the version it names; of a branch
its newest one), ``fork`` (of a branch, else null), ``facts`` and ``metadata`` ``[{label, value}]``,
``tags`` and ``children`` ``{lines: [{name, label, place}], hidden}``, ``note`` (whole), ``seen``
(what the ref is when somebody has looked at it: a change says it, and is refused if it is not so
any more).

Limits: ``MAX_RELATED`` of each, ``MAX_ENTRIES`` of the metadata, ``NOTE_CHARS`` of a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from lance_nb.errors import LanceError, RefNotFoundError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.ref_lines import (
    NOTE,
    Place,
    RefBook,
    branch_heads,
    fork_of,
    place_json,
    tag_place,
)
from lance_nb.explorer.models.source import Source, writable_dataset

MAX_RELATED = 50
MAX_ENTRIES = 30
NOTE_CHARS = 2000
Json = dict[str, Any]
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RefDetail:
    """A branch or a tag, bounded for showing."""

    kind: str
    name: str | None
    label: str
    place: Json | None
    fork: Json | None
    facts: tuple[Json, ...]
    metadata: tuple[Json, ...]
    tags: Json
    children: Json
    note: str
    seen: Any

    def to_json(self) -> dict[str, Any]:
        """Return the detail as JSON-able values."""
        return asdict(self)


def ref_detail(dataset: Source, book: RefBook, kind: str, name: str | None) -> RefDetail:
    """Describe a branch (None is main) or a tag. Raises RefNotFoundError."""
    if kind == "tag":
        return _tag(book, name or "")
    return _branch(dataset, book, name)


def _tag(book: RefBook, name: str) -> RefDetail:
    record = book.tags.get(name)
    if record is None:
        raise RefNotFoundError("tag", name, tuple(book.tags))
    place = tag_place(record)
    others = [one for one in book.tags_at(place) if one != name]
    facts = [
        _fact("version", text.ref_label(*place)),
        _fact("created", text.moment(record.get("created_at"))),
    ]
    if record.get("updated_at") != record.get("created_at"):
        facts.append(_fact("moved", text.moment(record.get("updated_at"))))
    return RefDetail(
        kind="tag",
        name=name,
        label=text.name(name),
        place=place_json(place),
        fork=None,
        facts=tuple(facts),
        metadata=_metadata(record),
        tags=_related(others, lambda one: tag_place(book.tags[one])),
        children=_related(book.forks_at(place), lambda one: fork_of(book.branches[one])),
        note=whole_note(record),
        seen=place_json(place),
    )


def _branch(dataset: Source, book: RefBook, name: str | None) -> RefDetail:
    record: Record | None = {} if name is None else book.branches.get(name)
    if record is None:
        raise RefNotFoundError("branch", name or "", tuple(book.branches))
    (head,) = branch_heads(dataset, book, [name])
    fork = place_json(fork_of(record)) if record else None
    tags, children = book.tags_on(name), book.children_of(name)
    facts = [*_head_facts(head), *_fork_facts(fork, head, record), *_folder(dataset, name)]
    place = place_json((name, head["version"])) if "version" in head else None
    return RefDetail(
        kind="branch",
        name=name,
        label=text.name(name or "main"),
        place=place,
        fork=fork,
        facts=tuple(facts),
        metadata=_metadata(record),
        tags=_related(tags, lambda one: tag_place(book.tags[one])),
        children=_related(children, lambda one: fork_of(book.branches[one])),
        note=whole_note(record),
        seen=identity_of(record, head),
    )


def identity_of(record: Record, head: Json) -> str:
    """Return what tells the branch that was seen from what it may have become."""
    return f"{head.get('version')} {record.get('create_at')}"


def _head_facts(head: Json) -> list[Json]:
    if "problem" in head:
        return [_fact("newest version", head["problem"])]
    when = head["time_ms"]
    moment = None if when is None else datetime.fromtimestamp(when / 1000, UTC)
    return [
        _fact("newest version", text.ref_label(head["name"], head["version"])),
        _fact("rows", text.count(head["rows"])),
        _fact("last change", text.moment(moment)),
    ]


def _fork_facts(fork: Json | None, head: Json, record: Record) -> list[Json]:
    if fork is None:
        return []
    created = int(record.get("create_at") or 0)
    facts = [_fact("started from", fork["label"])]
    if head.get("ahead") is not None:
        facts.append(_fact("ahead", f"{text.plural(head['ahead'], 'version')} since then"))
    if head.get("behind") is not None:
        facts.append(
            _fact("behind", f"{text.plural(head['behind'], 'version')} of its parent since then")
        )
    return [*facts, _fact("created", text.moment(datetime.fromtimestamp(created, UTC)))]


def _folder(dataset: Source, name: str | None) -> list[Json]:
    """Tell what lies in the folder of a branch: one listing."""
    if name is None or not hasattr(dataset, "opened"):
        return []
    try:
        found = writable_dataset(dataset).branches.explain_delete(name, users=False)
    except LanceError:
        return []
    files = text.plural(found.num_files, "file")
    return [_fact("in its own folder", f"{text.size(found.size_bytes)} in {files}")]


def _fact(label: str, value: str) -> Json:
    return {"label": label, "value": value}


def whole_note(record: Record) -> str:
    """Return what a person wrote about a ref."""
    return str((record.get("metadata") or {}).get(NOTE, ""))[:NOTE_CHARS]


def _metadata(record: Record) -> tuple[Json, ...]:
    """Return the rest of the metadata."""
    entries = [one for one in (record.get("metadata") or {}).items() if one[0] != NOTE]
    return tuple(_fact(text.name(key), text.line(value)) for key, value in entries[:MAX_ENTRIES])


def _related(names: Sequence[str], place: Callable[[str], Place]) -> Json:
    shown = [
        {"name": one, "label": text.name(one), "place": place_json(place(one))}
        for one in names[:MAX_RELATED]
    ]
    return {"lines": shown, "hidden": max(0, len(names) - MAX_RELATED)}
