"""Tags and branches: the JSON records in ``_refs`` and the rules for their names.

Layout (pretty-printed JSON; keys are camelCase on disk, except inside ``identifier``)::

    tag     {"branch": null | name, "version": 2, "createdAt": time, "updatedAt": time,
             "manifestSize": 459, "metadata": {}}
    branch  {"parentBranch": null | name, "identifier": {"version_mapping": [[2, "<32 hex>"], ...]},
             "parentVersion": 2, "createAt": seconds, "manifestSize": 422, "metadata": {}}

Times are RFC 3339 with nanoseconds, ``2026-11-21T03:02:09.147127079Z``. ``version_mapping`` has one
pair per ancestor branch.

Limits: a record is at most 1 MB. The snake_case keys of the specification are read as well. Keys of
newer writers are kept and written back.
Source: branch and tag specification; keys and nesting as pylance 14.0.2 writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from lance_nb.errors import CorruptFileError, InvalidRefError
from lance_nb.format.alphanumeric import is_alphanumeric
from lance_nb.value_classes import dataclass

RECORD_BYTES_MAX = 1_000_000
MAIN = "main"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?\d*([Zz]|[+-]\d{2}:\d{2})"
)
_U64_MAX = 2**64 - 1
_SECONDS_MIN, _SECONDS_MAX = -62_135_596_800, 253_402_300_799  # the years 1 to 9999


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one version of one branch. Times count nanoseconds from the epoch."""

    version: int
    branch: str | None = None
    created_at_ns: int | None = None
    updated_at_ns: int | None = None
    manifest_size_bytes: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def created_at(self) -> datetime | None:
        """When the tag was created (aware, UTC)."""
        return _datetime_of(self.created_at_ns)

    @property
    def updated_at(self) -> datetime | None:
        """When the tag was last moved (aware, UTC)."""
        return _datetime_of(self.updated_at_ns)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str) -> Tag:
        """Read a record. Raises CorruptFileError."""
        record = _Record(data, path)
        return cls(
            version=record.number("version", required=True),
            branch=record.text("branch"),
            created_at_ns=record.time("created_at"),
            updated_at_ns=record.time("updated_at"),
            manifest_size_bytes=record.number("manifest_size"),
            metadata=record.metadata(),
            unknown=record.unknown(),
        )

    def to_bytes(self) -> bytes:
        """Return the record as pylance writes it."""
        return _dump(
            {
                "branch": self.branch,
                "version": self.version,
                "createdAt": _format_time(self.created_at_ns),
                "updatedAt": _format_time(self.updated_at_ns),
                "manifestSize": self.manifest_size_bytes,
                "metadata": dict(self.metadata),
                **self.unknown,
            }
        )


@dataclass(frozen=True, slots=True)
class Branch:
    """A second line of versions, forked from ``parent_branch`` (None: main) at a version.

    ``identifier`` holds (parent version, id) pairs, the oldest ancestor first.
    """

    parent_branch: str | None
    parent_version: int
    identifier: tuple[tuple[int, str], ...] = ()
    create_at: int = 0
    manifest_size_bytes: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str) -> Branch:
        """Read a record. Raises CorruptFileError."""
        record = _Record(data, path)
        return cls(
            parent_branch=record.text("parent_branch"),
            parent_version=record.number("parent_version", required=True),
            identifier=record.identifier(),
            create_at=record.number("create_at"),
            manifest_size_bytes=record.number("manifest_size"),
            metadata=record.metadata(),
            unknown=record.unknown(),
        )

    def to_bytes(self) -> bytes:
        """Return the record as pylance writes it."""
        mapping = [[version, identity] for version, identity in self.identifier]
        return _dump(
            {
                "parentBranch": self.parent_branch,
                "identifier": {"version_mapping": mapping},
                "parentVersion": self.parent_version,
                "createAt": self.create_at,
                "manifestSize": self.manifest_size_bytes,
                "metadata": dict(self.metadata),
                **self.unknown,
            }
        )


# --- names --------------------------------------------------------------------------------------


def check_tag_name(name: str) -> str:
    """Return a valid tag name. Raises InvalidRefError that names the broken rule."""
    if not name:
        raise InvalidRefError("a tag name cannot be empty")
    if not _is_segment(name):
        raise InvalidRefError(
            f"tag name {name!r} may hold only letters, digits, '.', '-' and '_' (no '/')"
        )
    if name.startswith(".") or name.endswith("."):
        raise InvalidRefError(f"tag name {name!r} cannot start or end with '.'")
    if name.endswith(".lock"):
        raise InvalidRefError(f"tag name {name!r} cannot end with '.lock'")
    if ".." in name:
        raise InvalidRefError(f"tag name {name!r} cannot hold '..'")
    return name


def check_branch_name(name: str) -> str:
    """Return a valid branch name. Raises InvalidRefError that names the broken rule."""
    if not name:
        raise InvalidRefError("a branch name cannot be empty")
    if name.startswith("/") or name.endswith("/"):
        raise InvalidRefError(f"branch name {name!r} cannot start or end with '/'")
    if "//" in name:
        raise InvalidRefError(f"branch name {name!r} cannot hold '//'")
    if ".." in name or "\\" in name:
        raise InvalidRefError(f"branch name {name!r} cannot hold '..' or a backslash")
    segments = name.split("/")
    # The rules allow the segment ".", but it is the same folder as its parent.
    if not all(_is_segment(segment) and segment != "." for segment in segments):
        raise InvalidRefError(
            f"branch name {name!r} may hold only letters, digits, '.', '-' and '_' between '/'"
        )
    if name.endswith(".lock"):
        raise InvalidRefError(f"branch name {name!r} cannot end with '.lock'")
    if name == MAIN:
        raise InvalidRefError(f"branch name {MAIN!r} is reserved for the main branch")
    return name


def _is_segment(text: str) -> bool:
    return bool(text) and all(
        character in ".-_" or is_alphanumeric(character) for character in text
    )


# --- JSON ---------------------------------------------------------------------------------------


class _Record:
    """One JSON object of bounded size; every value is checked when it is read."""

    def __init__(self, data: bytes | memoryview, path: str) -> None:
        self._path = path
        if len(data) > RECORD_BYTES_MAX:
            raise self._corrupt(f"at most {RECORD_BYTES_MAX} bytes", f"{len(data)} bytes")
        try:
            values = json.loads(bytes(data))
        except (ValueError, RecursionError) as error:
            raise self._corrupt("a JSON object", str(error)[:100]) from error
        if not isinstance(values, dict):
            raise self._corrupt("a JSON object", type(values).__name__)
        self._values: dict[str, Any] = values
        self._names_read: set[str] = set()

    def _corrupt(self, expected: str, actual: str) -> CorruptFileError:
        return CorruptFileError(self._path, None, expected, actual)

    def _get(self, name: str) -> Any:
        """Return the value of a snake_case key or of its camelCase form, None if absent."""
        camel = _camel_case(name)
        self._names_read |= {name, camel}
        value = self._values.get(camel)
        return self._values.get(name) if value is None else value

    def unknown(self) -> dict[str, Any]:
        """Return the keys that have not been read."""
        return {key: value for key, value in self._values.items() if key not in self._names_read}

    def text(self, name: str) -> str | None:
        value = self._get(name)
        if value is not None and not isinstance(value, str):
            raise self._corrupt(f"text for {name}", repr(value)[:80])
        return value

    def number(self, name: str, *, required: bool = False) -> int:
        value = self._get(name)
        if value is None and not required:
            return 0
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _U64_MAX:
            raise self._corrupt(f"a number for {name}", repr(value)[:80])
        return int(value)

    def time(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        time = _parse_time(value)
        if time is None:
            raise self._corrupt(f"a time for {name}", repr(value)[:80])
        return time

    def metadata(self) -> dict[str, str]:
        value = self._get("metadata") or {}
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise self._corrupt("an object of texts for metadata", repr(value)[:80])
        return value

    def identifier(self) -> tuple[tuple[int, str], ...]:
        value = self._get("identifier")
        if value is None:
            return ()
        pairs = value.get("version_mapping", []) if isinstance(value, dict) else None
        if not isinstance(pairs, list) or not all(_is_pair(pair) for pair in pairs):
            raise self._corrupt("[version, id] pairs in identifier", repr(value)[:80])
        return tuple((version, identity) for version, identity in pairs)


@cache
def _camel_case(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


def _is_pair(value: object) -> bool:
    match value:
        case [int(), str()]:
            return True
    return False


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _dump(record: Mapping[str, Any]) -> bytes:
    """Return ``json.dumps(record, indent=2)``, whose encoder is written in Python, for scalars."""
    pairs = ",\n".join(f"  {_encode(key)}: {_dump_value(value)}" for key, value in record.items())
    return f"{{\n{pairs}\n}}".encode()


def _dump_value(value: Any) -> str:
    if not value or not isinstance(value, dict | list):
        return _encode(value)
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")


def _parse_time(text: str) -> int | None:
    """Return nanoseconds from the epoch, None for an invalid time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone}") - _EPOCH
    except (ValueError, OverflowError):
        return None
    seconds = moment.days * 86_400 + moment.seconds
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:  # its zone may shift it out of range
        return None
    return seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))


def _format_time(time_ns: int | None) -> str | None:
    if time_ns is None:
        return None
    seconds, nanos = divmod(time_ns, 1_000_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


def _datetime_of(time_ns: int | None) -> datetime | None:
    return None if time_ns is None else _EPOCH + timedelta(microseconds=time_ns // 1000)
