"""The journal: results of tasks, kept until their commit is known to have happened.

When the kernel dies, or a commit's outcome is unknown, the work of the tasks is not lost: the plan
and its results lie in the user's cache folder, and are committed again under the same operation id,
which commits nothing twice.

Layout: ``<cache>/lance_nb/jobs/<operation id>.json``, two lines: what it is, with the SHA-256 of
the rest; then plan, results and label (journal_values.py). The folder and its files are the user's
alone (private_folder.py).

Safety: nothing in an entry runs or chooses code. Credentials are not kept: ``resume`` is given them
again, or finds them in the environment. An entry that is damaged, not ours or of another release
is listed with the reason, and hides no other.

Limits: results above ``ENTRY_BYTES_MAX`` are not kept; their commit is made all the same. Entries
of older versions were pickles, which are never read: they are listed, and can be forgotten.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_nb.code_lines import Python
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.public_location import public_uri
from lance_nb.errors import InvalidInputError, StorageError
from lance_nb.spark.journal_values import Given, from_json, to_json
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan
from lance_nb.spark.private_folder import PrivateFolder

if TYPE_CHECKING:
    from lance_nb.storage.registry import StorageOptions

ENTRY_BYTES_MAX = 256 * 1024**2
FORMAT = 1
_NEW, _OLD = ".json", ".pickle"
_SPARK = Python("lance_nb.spark")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_USER_INFO = re.compile(r"//[^/@\s]*:[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Entry:
    """Work that is done and not known to be committed: ``verb`` and ``detail`` of the dataset.

    ``problem`` says why it cannot be resumed, and what to do; "" if it can.
    """

    operation_id: str
    verb: str = ""
    detail: str = ""
    uri: str = ""
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.operation_id}: {self.problem}"
        return f"{self.operation_id}: {self.verb} {self.detail} on {self.uri}"


def check() -> None:
    """Refuse a folder that is not the user's alone, before work is done that it shall keep.

    Raises StorageError.
    """
    _folder().check()


def keep(plan: Plan, results: Sequence[Any], label: Label) -> Entry | None:
    """Write an entry, durably, before its commit is tried; None when it is too large to be kept.

    Raises StorageError.
    """
    plan = replace(plan, detail=_USER_INFO.sub("//***@", plan.detail))
    entry = Entry(plan.operation_id, plan.verb, plan.detail, public_uri(plan.place.uri))
    body = to_json((_kept(plan), tuple(results), label))
    head = {
        "format": FORMAT, "operation_id": entry.operation_id, "verb": entry.verb,
        "detail": entry.detail, "uri": entry.uri, "sha256": hashlib.sha256(body).hexdigest(),
    }  # fmt: skip
    data = json.dumps(head).encode() + b"\n" + body
    if len(data) > ENTRY_BYTES_MAX:
        return None
    _folder().write(_name(plan.operation_id), data)
    return entry


def forget(operation_id: str) -> None:
    """Remove an entry: its commit happened, or is given up. Its files are left to cleanup.

    Raises InvalidInputError for what is no operation id, StorageError.
    """
    folder = _folder()
    folder.remove(_name(operation_id))
    folder.remove(_name(operation_id, _OLD))


def unfinished() -> list[Entry]:
    """List the entries whose commit is not known to have happened, the oldest first.

    Also those that cannot be resumed, with the reason. Raises StorageError for a folder that is
    not the user's alone.
    """
    found = []
    for name in _folder().names():
        stem, dot, suffix = name.rpartition(".")
        if dot + suffix in (_NEW, _OLD) and _ID.fullmatch(stem):
            read = _read(stem, dot + suffix)
            found += [] if read is None else [read[0]]
    return found


def resume(
    operation_id: str,
    storage_options: StorageOptions | None = None,
    target_storage_options: StorageOptions | None = None,
) -> LanceDataset:
    """Commit an entry, if it is not committed already, and return the version it made.

    Credentials are not kept: ``storage_options`` are those of the dataset, and
    ``target_storage_options`` those of the copy that a clone makes, if they differ. What is not
    given is looked for in the environment. Example::

        lance_nb.spark.resume(id, storage_options={"key": key, "secret": secret})

    Raises InvalidInputError when there is no such entry, or it cannot be resumed, or options are
    missing, and what ``Plan.commit`` raises.
    """
    read = _read(operation_id, _NEW) or _read(operation_id, _OLD)
    if read is None:
        known = ", ".join(one.operation_id for one in unfinished()) or "none"
        raise InvalidInputError(f"no unfinished operation {operation_id!r}; unfinished: {known}")
    entry, body = read
    if entry.problem:
        raise InvalidInputError(f"operation {entry}")
    target = storage_options if target_storage_options is None else target_storage_options
    given = Given(storage_options, target)
    plan, results, label = _taken_apart(operation_id, from_json(body, given))
    if given.missing:
        raise InvalidInputError(_missing(entry, given))
    made = plan.commit(results, label)
    forget(operation_id)
    return made


def _read(operation_id: str, suffix: str) -> tuple[Entry, bytes] | None:
    """Read an entry and what it holds; None if it is not there."""
    folder, name = _folder(), _name(operation_id, suffix)
    if suffix == _OLD:
        return (Entry(operation_id, problem=_old(operation_id)), b"") if folder.has(name) else None
    try:
        data = folder.read(name, ENTRY_BYTES_MAX)
    except StorageError as error:
        return Entry(operation_id, problem=_useless(operation_id, str(error))), b""
    if data is None:
        return None
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != FORMAT:
            problem = f"it has format {head['format']!r}, and this release writes {FORMAT}"
            return Entry(operation_id, problem=_useless(operation_id, problem)), b""
        is_whole = head["sha256"] == hashlib.sha256(body).hexdigest()
        verb, detail, uri = (str(head[key]) for key in ("verb", "detail", "uri"))
        is_whole = is_whole and head["operation_id"] == operation_id
    except (ValueError, TypeError, KeyError, RecursionError):
        verb = detail = uri = ""
        is_whole = False
    problem = "" if is_whole else _useless(operation_id, "it is damaged")
    return Entry(operation_id, verb, detail, uri, problem), body


def _useless(operation_id: str, reason: str) -> str:
    removed = _SPARK.attribute("forget").call(operation_id)
    return (
        f"cannot be resumed: {reason}. Look in the history whether its transaction is there, do "
        f"the work again if not, and remove it: {removed.code}"
    )


def _old(operation_id: str) -> str:
    return _useless(
        operation_id, "it was written by an older version, as a pickle, which is never read"
    )


def _kept(plan: Plan) -> dict[str, Any]:
    """Return what a commit needs of a plan."""
    return {
        "verb": plan.verb,
        "detail": plan.detail,
        "place": plan.place,
        "finish": plan.finish,
        "is_empty_too": plan.is_empty_too,
        "operation_id": plan.operation_id,
    }


def _taken_apart(operation_id: str, found: Any) -> tuple[Plan, tuple[Any, ...], Label]:
    """Check what was read, and make the plan of it. Raises InvalidInputError."""
    try:
        kept, results, label = found
        plan = Plan(**kept, tasks=())
        is_sound = isinstance(label, Label) and isinstance(plan.place, Place)
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound or plan.operation_id != operation_id or not callable(plan.finish):
        raise InvalidInputError(f"operation {operation_id}: {_useless(operation_id, 'it is odd')}")
    return plan, results, label


def _missing(entry: Entry, given: Given) -> str:
    """Say which options are missing, and how to give them."""
    listed = "; ".join(
        f"{what} (or the environment variable {' or '.join(names)})"
        for what, names in given.missing.items()
    )
    return (
        f"operation {entry} cannot be finished yet: credentials are not kept, and these are "
        f"missing: {listed}. Give them as storage_options={{...}} to "
        f"{_SPARK.attribute('resume').call(entry.operation_id).code}, and as "
        "target_storage_options={...} for the copy that a clone makes if it has others"
    )


def _name(operation_id: str, suffix: str = _NEW) -> str:
    if not _ID.fullmatch(operation_id):
        raise InvalidInputError(f"{operation_id!r} is not an operation id")
    return f"{operation_id}{suffix}"


def _folder() -> PrivateFolder:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not cache.is_absolute():  # "should be ignored", says the specification of the variable
        cache = Path.home() / ".cache"
    return PrivateFolder(cache, "lance_nb", "jobs")
