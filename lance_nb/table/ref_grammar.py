"""Find the version that a ref means: one grammar for every place where a version is named.

==========================  ==================================================================
``12``, ``"12"``            version 12 of the branch in view
``"dev:12"``, ``"main:12"``  version 12 of that branch; ``("dev", 12)`` is the same
``"dev"``, ``"main"``       newest version of the branch; ``("dev", None)`` is the same
``"v1"``, ``"tag:v1"``      the version that the tag names
``"HEAD"``, ``"HEAD~2"``    newest version of the branch in view, two versions before it
``"dev:HEAD~2"``            the same of another branch
``"2026-08-01"``            newest version of the branch in view at the end of that day
``"2026-08-01T12:00"``      newest version at that time, which is local unless it has a zone
a datetime, a date          as such a text
==========================  ==================================================================

A text that is the name of a tag, of a branch, and a number, ``HEAD`` or a date may be read in more
than one way. Where the readings are different versions it is refused, with how each is written.

Limits: a text has at most ``TEXT_CHARS_MAX`` characters.
Source: spec page "branch and tag".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from lance_nb.errors import InvalidRefError, RefNotFoundError, VersionNotFoundError
from lance_nb.format import layout
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.refs import MAIN, Ref, Target
from lance_nb.table.versions import version_asof, version_names

if TYPE_CHECKING:
    from lance_nb.format.refs import Tag

TEXT_CHARS_MAX = 300
_HEAD = re.compile(r"HEAD(?:~(\d{1,9}))?", re.ASCII)  # digits of other scripts are names
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?", re.ASCII
)
_NO_NAME = re.compile(r"-.*|.*(\.\.|[~^@\s,:]).*", re.DOTALL)
_GRAMMAR = (
    "write a number (12), a tag (v1 or tag:v1), a branch (dev), branch:number (dev:3), HEAD~2, or "
    "a date (2026-08-01)"
)


def resolve(root: Store, ref: Ref | None, branch: str | None) -> Target:
    """Find out what ``ref`` means, seen from ``branch``.

    None is the latest version of ``branch``. Raises InvalidRefError for what is no ref or has two
    meanings, RefNotFoundError, and VersionNotFoundError for a tag on a branch that was deleted, and
    for what is older than the oldest version.
    """
    match ref:
        case None:
            return Target(branch, None)
        case bool():
            pass
        case int():
            return Target(branch, _check_version(ref))
        case str():
            return _text(root, ref, branch)
        case date():
            return _at_time(root, branch, moment_of(ref, end_of_day=True))
        case (str() | None as name, int() | None as version) if not isinstance(version, bool):
            checked = None if version is None else _check_version(version)
            return Target(_check_branch(root, name), checked)
    raise InvalidRefError(f"{ref!r} is not a version; {_GRAMMAR}, or (branch, version)")


def _text(root: Store, written: str, branch: str | None) -> Target:
    ref = written.strip()
    if not ref or len(ref) > TEXT_CHARS_MAX:
        raise InvalidRefError(f"{written[:TEXT_CHARS_MAX]!r} is not a version; {_GRAMMAR}")
    if ref.startswith("tag:"):
        return _tagged(root, ref.removeprefix("tag:"))
    name, colon, place = ref.rpartition(":")
    if colon and not _DATE.fullmatch(ref):
        head = _HEAD.fullmatch(place)
        if not name or not (head or _NUMBER.fullmatch(place)):
            raise InvalidRefError(f"{ref!r} is not a version; {_GRAMMAR}")
        branch = _check_branch(root, name)
        return (
            _from_head(root, branch, head) if head else Target(branch, _check_version(int(place)))
        )
    return _word(root, ref, branch)


def _word(root: Store, ref: str, branch: str | None) -> Target:
    """Resolve a text without a colon, or a date. Raises InvalidRefError where it is ambiguous."""
    readings: dict[str, Target] = {}
    tags, branches = refs.tag_names(root), refs.branch_names(root)
    branch_name = branch or MAIN
    if ref in tags:
        readings[f"tag:{ref} for the tag"] = _tagged(root, ref)
    if ref == MAIN or ref in branches:
        readings[f"{ref}:HEAD for the branch"] = Target(None if ref == MAIN else ref, None)
    head = _HEAD.fullmatch(ref)
    if _NUMBER.fullmatch(ref):
        numbered = Target(branch, _check_version(int(ref)))
        if not readings or _has_version(root, numbered):
            readings[f"{branch_name}:{ref} for the version"] = numbered
    elif head is not None:
        readings[f"{branch_name}:{ref} for the newest versions"] = _from_head(root, branch, head)
    elif _DATE.fullmatch(ref):
        moment = _parsed(ref)
        readings[f"{moment:%Y-%m-%dT%H:%M:%S} for the time"] = _at_time(root, branch, moment)
    if not readings:
        if _NO_NAME.fullmatch(ref):
            raise InvalidRefError(f"{ref!r} is not a version; {_GRAMMAR}")
        names = ["HEAD", MAIN, *branches, *tags]
        raise RefNotFoundError("tag or branch", ref, _nearest_first(ref, names))
    if len(set(readings.values())) > 1:
        written = ", ".join(readings)
        raise InvalidRefError(f"{ref!r} has more than one meaning here: write {written}")
    return next(iter(readings.values()))


def _nearest_first(name: str, names: Sequence[str]) -> tuple[str, ...]:
    import difflib  # is only needed by messages

    folded = {candidate.casefold(): candidate for candidate in names}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, 3, 0.5)]
    return (*near, *(other for other in names if other not in near))


def _has_version(root: Store, target: Target) -> bool:
    names = version_names(refs.branch_store(root, target.branch))
    return any(name.version == target.version for name in names)


def _from_head(root: Store, branch: str | None, head: re.Match[str]) -> Target:
    back = int(head[1] or 0)
    if not back:
        return Target(branch, None)
    home = refs.branch_store(root, branch)
    names = version_names(home)
    if back >= len(names):
        oldest = f"HEAD~{len(names) - 1} is the oldest"
        raise VersionNotFoundError(home.uri, f"HEAD~{back}", oldest)
    return Target(branch, names[-1 - back].version)


def _parsed(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRefError(f"{text!r} is not a date or time; {_GRAMMAR}") from None
    return moment_of(moment if len(text) > len("2026-08-01") else moment.date(), end_of_day=True)


def moment_of(moment: date, *, end_of_day: bool) -> datetime:
    """Return a date or time with a zone: local time unless it has one.

    Args:
        moment: a datetime; of a date its last microsecond if ``end_of_day``, else its midnight.
        end_of_day: which of the two.
    """
    if isinstance(moment, datetime):
        return moment.astimezone()
    midnight = datetime(moment.year, moment.month, moment.day).astimezone()
    return midnight + timedelta(days=1, microseconds=-1) if end_of_day else midnight


def _at_time(root: Store, branch: str | None, moment: datetime) -> Target:
    return Target(branch, version_asof(refs.branch_store(root, branch), moment).version)


def _tagged(root: Store, name: str) -> Target:
    if name not in refs.tag_names(root):
        raise RefNotFoundError("tag", name, _nearest_first(name, refs.tag_names(root)))
    tag = refs.read_tag(root, name)
    return Target(_branch_of_tag(root, name, tag), tag.version, name)


def _branch_of_tag(root: Store, name: str, tag: Tag) -> str | None:
    try:
        return _check_branch(root, tag.branch)
    except RefNotFoundError as error:
        home = refs.branch_store(root, tag.branch)
        reason = f"none, because branch {tag.branch!r} does not exist"
        raise VersionNotFoundError(home.uri, tag.version, reason, name) from error


def _check_branch(root: Store, name: str | None) -> str | None:
    if name is None or name == MAIN:
        return None
    from lance_nb.format.refs import check_branch_name

    check_branch_name(name)
    # Its own file is looked for, as there may be hundreds; another writer may spell the name of
    # the file otherwise.
    path = layout.branch_path(name)
    is_found = root.exists(path) and not refs.is_absent(root, path, name)
    if not is_found and name not in refs.branch_names(root):
        raise RefNotFoundError(
            "branch", name, _nearest_first(name, [MAIN, *refs.branch_names(root)])
        )
    return name


def _check_version(version: int) -> int:
    if not 0 < version < 2**64:
        raise InvalidRefError(f"version {version} is not a positive number")
    return version
