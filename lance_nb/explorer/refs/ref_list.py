"""List branches and tags, one window of lines at a time, and describe one of them in detail.

Layout of ``RefPage.to_json``: ``kind`` (branch or tag), ``branches`` and ``tags`` (how many there
are), ``damaged`` (tags whose file cannot be read), ``matching``, ``first``, ``lines``::

    branch  {name, label, fork: {branch, version, label}, created_ms, tags, children, unfinished,
             note}
    tag     {name, label, place: {branch, version, label}, created_ms, updated_ms, note, pin}

``pin``: the version for which a merge made the tag, null for any other tag. Name and fork of main
are null, because it has no record; ``name`` is for requests, ``label`` is
shown. ``unfinished``: it has a record and no version. Versions, rows and ages need a manifest per
branch, so ``branch_heads`` is requested for some branches only::

    {name, version, rows, time_ms, ahead, behind, merged, exact}     or {name, problem}

``ahead`` counts the versions that the branch it started from lacks, ``behind`` those of it that the
branch lacks, both without what merges brought over; ``merged`` is the newest version that was
merged there, null if none was. Beyond ``MAX_COMPARED`` versions since the fork nothing is read:
``exact`` is false, and all of them are counted.

Layout of ``RefDetail.to_json``: ``kind``, ``name``, ``label``, ``place`` (the version it names; of
a branch its newest one), ``fork`` (of a branch, else null), ``facts`` and ``metadata`` ``[{label,
value}]``, ``tags`` and ``children`` ``{lines: [{name, label, place}], hidden}``, ``note`` (whole),
``seen`` (identifies the state that was shown: a change sends it back, and is refused if the ref has
changed since).

Limits: ``MAX_LINES`` lines, ``MAX_HEADS`` heads at a time; in detail ``MAX_RELATED`` related refs,
``MAX_ENTRIES`` entries of the metadata, ``NOTE_CHARS`` characters of a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lance_nb.errors import InvalidInputError, LanceError, NotFoundError, RefNotFoundError
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.source import Source, writable_dataset
from lance_nb.explorer.version_refs import MAIN
from lance_nb.value_classes import dataclass
from lance_nb.writing.pins import KEEPS, MADE_FOR, pin_of

if TYPE_CHECKING:
    from lance_nb.dataset import LanceDataset

MAX_LINES = 120
MAX_HEADS = 40
MAX_COMPARED = 500
NOTE = "note"
_NOTE_CHARS = 200
Line = Mapping[str, Any]
Place = tuple[str | None, int]
MAX_RELATED = 50
MAX_ENTRIES = 30
NOTE_CHARS = 2000
Json = dict[str, Any]
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RefBook:
    """The records of all tags and branches."""

    tags: Mapping[str, Mapping[str, Any]]
    branches: Mapping[str, Mapping[str, Any]]
    damaged: int = 0

    def tags_at(self, place: Place) -> list[str]:
        """Return the tags of a version, sorted."""
        return sorted(name for name, tag in self.tags.items() if tag_place(tag) == place)

    def tags_on(self, branch: str | None) -> list[str]:
        """Return the tags on any version of a branch, by version."""
        tags = [
            (tag["version"], name) for name, tag in self.tags.items() if tag.get("branch") == branch
        ]
        return [name for _, name in sorted(tags)]

    def forks_at(self, place: Place) -> list[str]:
        """Return the branches that started from a version, sorted."""
        return sorted(
            name for name, branch_record in self.branches.items() if fork_of(branch_record) == place
        )

    def children_of(self, branch: str | None) -> list[str]:
        """Return the branches that started from a branch, by version."""
        branches = [
            (fork_of(branch_record)[1], name)
            for name, branch_record in self.branches.items()
            if fork_of(branch_record)[0] == branch
        ]
        return [name for _, name in sorted(branches)]


def ref_book(dataset: Source) -> RefBook:
    """Read every record; a tag that is damaged does not hide the others."""
    branches = dataset.branches.list()
    try:
        return RefBook(dataset.tags.list(), branches)
    except LanceError:
        readable = dataset.tags.readable()
        return RefBook(readable, branches, len(dataset.tags.names()) - len(readable))


def tag_place(tag: Mapping[str, Any]) -> Place:
    """Return the branch and version of a tag's record."""
    return tag.get("branch"), int(tag["version"])


def fork_of(branch: Mapping[str, Any]) -> Place:
    """Return the branch and version that a branch started from."""
    return branch.get("parent_branch"), int(branch["parent_version"])


def is_missing(dataset: Source, place: Place) -> bool:
    """Return whether a version does not exist any more, for which a tag may still stand."""
    try:
        dataset.checkout_version(place)
    except NotFoundError:
        return True
    except LanceError:  # it exists, and cannot be read
        return False
    return False


def place_json(place: Place) -> dict[str, Any]:
    """Return a place for a request, with what is shown of it."""
    return {"branch": place[0], "version": place[1], "label": text.ref_label(*place)}


def pin_label(name: str, tag: Mapping[str, Any]) -> str | None:
    """Return the version for which a merge made a tag ("main:5"), None for any other tag."""
    place = tag_place(tag)
    pin = pin_of(name, *place, tag.get("metadata") or {})
    if pin is None:
        return None
    return text.ref_label(pin.made_for.branch, pin.made_for.version or 0)


def note_of(record: Mapping[str, Any]) -> str:
    """Return what people wrote about a ref: its note, or all its metadata in one line."""
    metadata = {
        key: value
        for key, value in (record.get("metadata") or {}).items()
        if key not in (KEEPS, MADE_FOR)
    }
    if NOTE in metadata:
        return text.line(metadata[NOTE], _NOTE_CHARS)
    shown = " · ".join(f"{key}: {value[:_NOTE_CHARS]}" for key, value in list(metadata.items())[:8])
    return text.line(shown, _NOTE_CHARS)


# --- pages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RefQuery:
    """What of a list is wanted. ``sort`` is a column of the kind, see ``SORTS``."""

    kind: str
    typed: str = ""
    sort: str = "name"
    descending: bool = False
    first: int = 0
    count: int = MAX_LINES


@dataclass(frozen=True, slots=True)
class RefPage(JsonFields):
    """A window of a list."""

    kind: str
    branches: int
    tags: int
    damaged: int
    matching: int
    first: int
    lines: tuple[Line, ...]


NamedRecord = tuple[str, Mapping[str, Any]]
SortKey = Callable[[NamedRecord], Any]


def _milliseconds(record: Mapping[str, Any], key: str) -> int:
    moment = record.get(key)
    return text.milliseconds(moment) or 0 if isinstance(moment, datetime) else 0


def _name(record: NamedRecord) -> str:
    return record[0].casefold()


def _branch_sorts(book: RefBook) -> dict[str, SortKey]:
    tags, children = _counts(book)
    return {
        "name": _name,
        "fork": lambda entry: (fork_of(entry[1])[0] or "", fork_of(entry[1])[1]),
        "created": lambda entry: entry[1].get("create_at") or 0,
        "refs": lambda entry: tags[entry[0]] + children[entry[0]],
    }


_TAG_SORTS: dict[str, SortKey] = {
    "name": _name,
    "place": lambda entry: (entry[1].get("branch") or "", entry[1]["version"]),
    "created": lambda entry: _milliseconds(entry[1], "created_at"),
    "updated": lambda entry: _milliseconds(entry[1], "updated_at"),
}


def ref_page(book: RefBook, query: RefQuery) -> RefPage:
    """Return a window of a list. Raises InvalidInputError for a column that it has not."""
    is_tags = query.kind == "tag"
    records = _matching(book.tags if is_tags else book.branches, query, is_tags)
    sorts = _TAG_SORTS if is_tags else _branch_sorts(book)
    if query.sort not in sorts:
        raise InvalidInputError(f"sort must be one of {', '.join(sorts)}")
    records.sort(key=_name)
    records.sort(key=sorts[query.sort], reverse=query.descending)
    if not is_tags and query.typed.casefold() in MAIN:
        records.insert(0, (MAIN, {}))  # always on top
    first = min(query.first, len(records))
    shown = records[first : first + min(query.count, MAX_LINES)]
    lines = [_tag_line(*entry) for entry in shown] if is_tags else _branch_lines(book, shown)
    counts = len(book.branches) + 1, len(book.tags), book.damaged
    return RefPage(query.kind, *counts, len(records), first, tuple(lines))


def _matching(
    records: Mapping[str, Mapping[str, Any]], query: RefQuery, is_tags: bool
) -> list[NamedRecord]:
    """Return the records that hold what was typed in their name or place."""
    needle = query.typed.strip().casefold()
    if not needle:
        return list(records.items())
    place = tag_place if is_tags else fork_of
    return [
        (name, record)
        for name, record in records.items()
        if needle in name.casefold() or needle in text.ref_label(*place(record)).casefold()
    ]


def _counts(book: RefBook) -> tuple[Counter[str], Counter[str]]:
    """Count the tags on each branch, and the branches that started from it."""
    tags = Counter(record.get("branch") or MAIN for record in book.tags.values())
    return tags, Counter(fork_of(branch)[0] or MAIN for branch in book.branches.values())


def _branch_lines(book: RefBook, records: Iterable[NamedRecord]) -> list[Line]:
    tags, children = _counts(book)
    return [
        {
            "name": name if record else None,
            "label": text.name(name),
            "fork": place_json(fork_of(record)) if record else None,
            "created_ms": 1000 * int(record.get("create_at") or 0),
            "tags": tags[name],
            "children": children[name],
            "unfinished": bool(record.get("is_unfinished")),
            "note": note_of(record),
        }
        for name, record in records
    ]


def _tag_line(name: str, record: Mapping[str, Any]) -> Line:
    return {
        "name": name,
        "label": text.name(name),
        "place": place_json(tag_place(record)),
        "created_ms": _milliseconds(record, "created_at"),
        "updated_ms": _milliseconds(record, "updated_at"),
        "note": note_of(record),
        "pin": pin_label(name, record),
    }


# --- heads ----------------------------------------------------------------------------------------


def branch_heads(
    dataset: Source, book: RefBook, names: Sequence[str | None]
) -> list[dict[str, Any]]:
    """Describe the newest version of some branches; one that cannot be read says why."""
    latest: dict[str | None, int | None] = {}

    def latest_of(branch: str | None) -> int | None:
        if branch not in latest:
            try:
                latest[branch] = dataset.checkout_version((branch, None)).version
            except LanceError:
                latest[branch] = None  # the parent was deleted
        return latest[branch]

    return [_head(dataset, book.branches.get(name or ""), name, latest_of) for name in names]


def _head(
    dataset: Source,
    record: Mapping[str, Any] | None,
    name: str | None,
    latest_of: Callable[[str | None], int | None],
) -> dict[str, Any]:
    try:
        head = dataset.checkout_version((name, None))
        rows, moment = head.count_rows(), _moment(head)
    except LanceError as error:
        return {"name": name, "problem": text.line(str(error), 200)}
    head_data: dict[str, Any] = {
        "name": name,
        "version": head.version,
        "rows": rows,
        "time_ms": text.milliseconds(moment),
        "ahead": None,
        "behind": None,
        "merged": None,
        "exact": True,
    }
    if record is not None:
        parent, fork = fork_of(record)
        newest = latest_of(parent)
        head_data["ahead"] = head.version - fork
        head_data["behind"] = None if newest is None else max(0, newest - fork)
        if newest is not None and hasattr(dataset, "opened"):
            head_data["exact"] = head_data["ahead"] + head_data["behind"] <= MAX_COMPARED
            if head_data["exact"]:
                head_data |= _compared(writable_dataset(dataset), name or MAIN, parent or MAIN)
    return head_data


def _compared(dataset: LanceDataset, name: str, parent: str) -> Line:
    """Count the versions that a branch and its parent do not have in common."""
    try:
        comparison = dataset.branches.compare(name, parent)
    except LanceError:  # what a side did is not known any more
        return {"exact": False}
    merged = comparison.merged
    return {
        "ahead": comparison.ahead,
        "behind": comparison.behind,
        "merged": None if merged is None else place_json((merged.branch, merged.version or 0)),
    }


def _moment(head: Source) -> datetime | None:
    """Return when an opened version was made: from its manifest, where there is one."""
    opened = getattr(head, "opened", None)
    if opened is None:
        return head.version_info(head.version).timestamp
    moment: datetime | None = opened[1].manifest.timestamp
    return moment


@dataclass(frozen=True, slots=True)
class RefDetail(JsonFields):
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


def ref_detail(dataset: Source, book: RefBook, kind: str, name: str | None) -> RefDetail:
    """Describe a branch (None is main) or a tag. Raises RefNotFoundError."""
    if kind == "tag":
        return _tag_detail(dataset, book, name or "")
    return _branch_detail(dataset, book, name)


def _tag_detail(dataset: Source, book: RefBook, name: str) -> RefDetail:
    record = book.tags.get(name)
    if record is None:
        raise RefNotFoundError("tag", name, tuple(book.tags))
    place = tag_place(record)
    other_tags = [tag_name for tag_name in book.tags_at(place) if tag_name != name]
    version = text.ref_label(*place)
    if is_missing(dataset, place):
        version += " (does not exist any more: move the tag, or delete it)"
    facts = [
        _fact("version", version),
        _fact("created", text.moment(record.get("created_at"))),
    ]
    pin = pin_label(name, record)
    if pin is not None:
        why = f"made by the merge {pin}, which reads files of {text.ref_label(*place)} in place"
        facts.append(_fact("kept for", f"{why}; goes once no version reads them"))
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
        tags=_related(other_tags, lambda tag_name: tag_place(book.tags[tag_name])),
        children=_related(book.forks_at(place), lambda branch: fork_of(book.branches[branch])),
        note=whole_note(record),
        seen=place_json(place),
    )


def _branch_detail(dataset: Source, book: RefBook, name: str | None) -> RefDetail:
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
        tags=_related(tags, lambda tag_name: tag_place(book.tags[tag_name])),
        children=_related(children, lambda branch: fork_of(book.branches[branch])),
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
    parent = text.name(fork["branch"] or MAIN)
    most = "" if head.get("exact", True) else "at most "
    if head.get("merged") is not None:
        suffix = "" if head["ahead"] else ", which is all of it"
        facts.append(_fact("merged", f"{head['merged']['label']} into {parent}{suffix}"))
    if head.get("ahead") is not None:
        ahead = text.plural(head["ahead"], "version")
        facts.append(_fact("ahead", f"{most}{ahead} that {parent} lacks"))
    if head.get("behind") is not None:
        behind = text.plural(head["behind"], "version")
        facts.append(_fact("behind", f"{most}{behind} of {parent} that it lacks"))
    return [*facts, _fact("created", text.moment(datetime.fromtimestamp(created, UTC)))]


def _folder(dataset: Source, name: str | None) -> list[Json]:
    """Tell what lies in the folder of a branch: one listing."""
    if name is None or not hasattr(dataset, "opened"):
        return []
    try:
        deletion = writable_dataset(dataset).branches.explain_delete(name, users=False)
    except LanceError:
        return []
    files = text.plural(deletion.num_files, "file")
    return [_fact("in its own folder", f"{text.size(deletion.size_bytes)} in {files}")]


def _fact(label: str, value: str) -> Json:
    return {"label": label, "value": value}


def whole_note(record: Record) -> str:
    """Return what a person wrote about a ref."""
    return str((record.get("metadata") or {}).get(NOTE, ""))[:NOTE_CHARS]


def _metadata(record: Record) -> tuple[Json, ...]:
    """Return the rest of the metadata."""
    entries = [item for item in (record.get("metadata") or {}).items() if item[0] != NOTE]
    return tuple(_fact(text.name(key), text.line(value)) for key, value in entries[:MAX_ENTRIES])


def _related(names: Sequence[str], place: Callable[[str], Place]) -> Json:
    shown = [
        {"name": name, "label": text.name(name), "place": place_json(place(name))}
        for name in names[:MAX_RELATED]
    ]
    return {"lines": shown, "hidden": max(0, len(names) - MAX_RELATED)}
