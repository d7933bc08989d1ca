"""Open datasets and versions as people write them, complete refs, and write the code that opens.

How a version is named is said in table/ref_grammar.

``open_source`` opens what a person passes to the explorer: a path, a URI, or an open dataset.

Completion uses names alone; no manifest is read. Layout of ``RefChoice.to_json``: ``ref`` (to be
resolved), ``label`` (fit to show), ``kind`` (branch, tag, version, head, date), ``note``. Exact
matches come first, then prefixes, then other matches; case does not matter.

Limits: a ref has at most ``MAX_CHARS`` characters. ``MAX_CHOICES`` choices in all, ``MAX_KIND`` of
a kind; names that are too long for a ref are left out.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Any

from lance_nb.code_lines import Python, magic
from lance_nb.dataset import dataset as open_dataset
from lance_nb.dataset.database import Database, database
from lance_nb.errors import (
    DatasetNotFoundError,
    InvalidInputError,
)
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.source import Ref, Source
from lance_nb.format.manifest import branch_of_message
from lance_nb.table.ref_grammar import TEXT_CHARS_MAX
from lance_nb.value_classes import dataclass

_OTHER_LIBRARIES = frozenset({
    "lance.dataset.LanceDataset", "lancedb.table.LanceTable", "lancedb.remote.table.RemoteTable",
})  # fmt: skip
_CONNECTIONS = frozenset({"lancedb.db.LanceDBConnection", "lancedb.remote.db.RemoteDBConnection"})
MAIN = "main"
MAX_CHARS = TEXT_CHARS_MAX
MAX_CHOICES = 14
MAX_KIND = 6
_TYPED_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?", re.ASCII)
_BRANCH_VERSION = re.compile(r"(.+):(\d{0,18})", re.ASCII)


def open_source(
    target: str | os.PathLike[str] | Source,
    version: Ref | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Source:
    """Open ``target`` at ``version``, which may be any ref described above.

    A dataset of pylance or a table of LanceDB is opened anew, at the version that it is at.
    """
    if isinstance(target, (str, os.PathLike)):
        source = _open(os.fspath(target), storage_options)
    elif is_of_other_library(target):
        source = _opened_anew(target, storage_options)
    else:
        source = target
    return source if version is None else source.checkout_version(version)


def is_of_other_library(target: object) -> bool:
    """Return whether a value is a dataset of pylance or a table of LanceDB."""
    return _type_of(target) in _OTHER_LIBRARIES


def is_connection(target: object) -> bool:
    """Return whether a value is what ``lancedb.connect`` returns."""
    return _type_of(target) in _CONNECTIONS


def open_connection(target: Any, storage_options: Mapping[str, Any] | None) -> Database:
    """Open the database of a LanceDB connection. Raises InvalidInputError for LanceDB Cloud."""
    options = storage_options or _options_of(target)
    return database(_place_of(target), storage_options=dict(options) if options else None)


def _type_of(target: object) -> str:
    return f"{type(target).__module__}.{type(target).__name__}"


def _place_of(target: Any) -> str:
    """Return where another library has something open. Raises InvalidInputError."""
    named = getattr(target, "uri", None)
    if not isinstance(named, str) or not named or named.startswith("db://"):
        raise InvalidInputError(
            f"this {type(target).__name__} is at no place that can be opened: what is in LanceDB "
            "Cloud is read by its service only"
        )
    return named


def _opened_anew(target: Any, storage_options: Mapping[str, Any] | None) -> Source:
    """Open what another library has open. Raises InvalidInputError where it has no place."""
    named = _place_of(target)
    if hasattr(target, "current_branch"):
        branch = target.current_branch()
    else:  # pylance names the branch in its manifest only
        branch = branch_of_message(target._ds.serialized_manifest(), named)  # noqa: SLF001
    root = named.removesuffix(f"/tree/{branch}")
    source = _open(root, storage_options or _options_of(target))
    return source.checkout_version((branch, target.version))


def _options_of(target: Any) -> Mapping[str, Any] | None:
    for name in ("latest_storage_options", "initial_storage_options", "storage_options"):
        options_attribute = getattr(target, name, None)
        options = options_attribute() if callable(options_attribute) else options_attribute
        if isinstance(options, Mapping) and options:
            return options
    return None


def _open(uri: str, storage_options: Mapping[str, Any] | None) -> Source:
    options = None if storage_options is None else dict(storage_options)
    try:
        source: Source = open_dataset(uri, storage_options=options)
    except DatasetNotFoundError as error:
        near = _similar_name(uri)
        if near:
            error.add_note(f"did you mean {near!r}?")
        tables = _tables_inside(uri)
        if tables:
            opened = Python("lance_nb.explore").call(uri).line()
            counted = text.plural(tables, "table")
            error.add_note(f"it is a folder of {counted}; open it with {opened}")
        raise
    return source


def _tables_inside(uri: str) -> int:
    """Return how many tables are in a local folder."""
    if "://" in uri or "\0" in uri:
        return 0
    try:
        return sum((path / "_versions").is_dir() for path in Path(uri).glob("*.lance"))
    except OSError:
        return 0


def _similar_name(uri: str) -> str:
    """Return a dataset with a similar name in the same local folder, or nothing."""
    if "://" in uri or "\0" in uri:
        return ""
    path = Path(uri)
    try:
        names = [
            path_beside.name
            for path_beside in path.parent.iterdir()
            if (path_beside / "_versions").is_dir() and path_beside != path
        ]
    except OSError:
        return ""
    matches = difflib.get_close_matches(path.name, names, n=1)
    return str(path.with_name(matches[0])) if matches else ""


def opened(dataset: Source) -> Python:
    """Return the expression that opens what is shown."""
    place = dataset.version if dataset.branch is None else (dataset.branch, dataset.version)
    return Python("lance_nb.dataset").call(dataset.uri, version=place)


def python_line(dataset: Source) -> str:
    """Return the Python line that opens what is shown."""
    return Python(f"ds = {opened(dataset).code}").line()


def place_word(branch: str | None, version: int) -> str:
    """Return how a version is named in a line of ``%lance``: ``main:3``."""
    return f"{branch or MAIN}:{version}"


def magic_line(dataset: Source) -> str:
    """Return the ``%lance`` line that travels to what is shown."""
    return magic("at", place_word(dataset.branch, dataset.version))


@dataclass(frozen=True, slots=True)
class RefNames:
    """The names of everything that can be travelled to from one branch.

    ``tags``: by name a text that changes when the tag is moved.
    """

    branch: str | None
    numbers: tuple[int, ...]
    branches: tuple[str, ...]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RefChoice(JsonFields):
    """One line of the list under the box."""

    ref: str
    label: str
    kind: str
    note: str


def ref_names(dataset: Source) -> RefNames:
    """List the names: three listings of the store, nothing is opened."""
    return RefNames(
        branch=dataset.branch,
        numbers=tuple(dataset.version_numbers()),
        branches=tuple(dataset.branches.names()),
        tags=dict(dataset.tags.marks()),
    )


def ref_choices(names: RefNames, typed: str) -> tuple[RefChoice, ...]:
    """Return what may be meant by ``typed``, the likeliest first; of nothing, what is near."""
    typed = typed.strip()[:MAX_CHARS]
    branch_name = text.name(names.branch or MAIN)
    groups = [
        _dates(typed),
        _heads(names, typed, branch_name),
        _versions(names, typed, branch_name),
        _branches(names, typed),
        _tags(names, typed),
        _of_branch(names, typed),
    ]
    choices = [choice for group in groups for choice in islice(group, MAX_KIND)]
    return tuple(choices[:MAX_CHOICES])


def _nearest(names: Iterable[str], typed: str) -> list[str]:
    """Return the names that hold ``typed``: exact ones, then beginnings, then the others."""
    needle = typed.casefold()

    def rank(name: str) -> tuple[int, str]:
        folded = name.casefold()
        return (0 if folded == needle else 1 if folded.startswith(needle) else 2), folded

    usable = (name for name in names if len(name) < MAX_CHARS - 8)
    return nsmallest(MAX_KIND, (name for name in usable if needle in name.casefold()), key=rank)


def _branches(names: RefNames, typed: str) -> Iterator[RefChoice]:
    for name in _nearest([MAIN, *names.branches], typed):
        yield RefChoice(name, text.name(name), "branch", "newest of the branch")


def _tags(names: RefNames, typed: str) -> Iterator[RefChoice]:
    for name in _nearest(names.tags, typed.removeprefix("tag:")):
        yield RefChoice(f"tag:{name}", text.name(name), "tag", "")


def _versions(names: RefNames, typed: str, branch_name: str) -> Iterator[RefChoice]:
    if typed and not typed.isdecimal():
        return
    exact = [number for number in names.numbers if str(number) == typed]
    newest_first: Sequence[int] = names.numbers[::-1]
    other_numbers = (n for n in newest_first if str(n).startswith(typed) and str(n) != typed)
    for number in [*exact, *islice(other_numbers, MAX_KIND - len(exact) if typed else 2)]:
        newest = " · newest" if number == names.numbers[-1] else ""
        yield RefChoice(str(number), str(number), "version", f"of {branch_name}{newest}")


def _heads(names: RefNames, typed: str, branch_name: str) -> Iterator[RefChoice]:
    upper_text = typed.upper()
    backs: list[int] = []
    match = re.fullmatch(r"HEAD~(\d{1,9})", upper_text)
    if match:
        backs = [int(match.group(1))]
    elif upper_text and "HEAD~".startswith(upper_text):
        backs = [0, 1, 2]
    for back in backs:
        if back < len(names.numbers):
            ref = f"HEAD~{back}" if back else "HEAD"
            yield RefChoice(ref, ref, "head", f"{branch_name}:{names.numbers[-1 - back]}")


def _dates(typed: str) -> Iterator[RefChoice]:
    if _TYPED_DATE.fullmatch(typed):
        when = "at that time" if len(typed) > 10 else "at the end of that day"
        yield RefChoice(typed, typed, "date", f"newest version {when}")


def _of_branch(names: RefNames, typed: str) -> Iterator[RefChoice]:
    """``dev:3``: whether there is a version 3 is seen when it is opened."""
    match = _BRANCH_VERSION.fullmatch(typed)
    if not match or match.group(1) == "tag":
        return
    for name in _nearest([MAIN, *names.branches], match.group(1)):
        number = match.group(2)
        ref = f"{name}:{number}" if number else name
        yield RefChoice(ref, text.name(ref), "branch" if not number else "version", "")
