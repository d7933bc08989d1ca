"""Build and parse every path and file name of a dataset.

::

    _versions/18446744073709551613.manifest    V2 name of version 2: 2**64 - 1 - version, 20 digits
    _versions/2.manifest                       V1 name of version 2
    _versions/d9223372036854775810.manifest    detached version (bit 63 set), not part of history
    _versions/latest_version_hint.json         {"version": 2}; used but never trusted
    _transactions/1-<uuid>.txn                 {read version}-{uuid}
    _deletions/4-17-998.arrow | .bin           {fragment id}-{read version}-{id}
    data/<any name>.lance                      _indices/<uuid>/
    _refs/tags/v1.json                         _refs/branches/fix%2Fissue-1.json
    tree/fix/issue-1/                          the folder of branch "fix/issue-1", laid out as above
    _quarantine/<id>/                          files that a repair has moved away; never read

V2 names sort newest first, so the latest version is the lexicographically first name; with V1 names
it is the largest number. A dataset has one of the two schemes, never both.

Limits: versions are below 2**63 (that bit marks detached ones).
Not supported: names staged by external manifest stores (``2.manifest-<uuid>``) are ignored, like
those left by interrupted commits (``….manifest#1``) and temporary files.
Source: lance-table ``naming`` and the branch and tag specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from urllib.parse import quote, unquote

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.value_classes import dataclass

VERSIONS = "_versions"
TRANSACTIONS = "_transactions"
DELETIONS = "_deletions"
DATA = "data"
INDICES = "_indices"
TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
TREE = "tree"
QUARANTINE = "_quarantine"
STREAM_MARK_PREFIX = "lance_nb.stream."  # of keys of the configuration, see stream_mark
HINT_PATH = f"{VERSIONS}/latest_version_hint.json"

DETACHED_BIT = 1 << 63
_U64_MAX = 2**64 - 1
_SUFFIX = ".manifest"
_HINT_NAME = HINT_PATH.removeprefix(f"{VERSIONS}/")
_V2_DIGITS = 20
_V2_LENGTH = _V2_DIGITS + len(_SUFFIX)
_PLAIN_PATH = re.compile(r"(?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*", re.ASCII)


class NamingScheme(Enum):
    """How manifest files are named."""

    V1 = "v1"
    V2 = "v2"


@dataclass(frozen=True, slots=True)
class ManifestName:
    """The version and the naming scheme in the name of a manifest file."""

    version: int
    scheme: NamingScheme

    @property
    def detached(self) -> bool:
        """Whether the version is outside of the history."""
        return self.version >= DETACHED_BIT

    @property
    def path(self) -> str:
        """The path of the manifest below the root of its branch."""
        return manifest_path(self.version, self.scheme)


def manifest_path(version: int, scheme: NamingScheme = NamingScheme.V2) -> str:
    """Return the path of a version's manifest; a version with bit 63 set is detached."""
    if not 0 <= version <= _U64_MAX:
        raise InvalidInputError(f"{version} is not a version number")
    if version & DETACHED_BIT:
        return f"{VERSIONS}/d{version}{_SUFFIX}"
    number = f"{_U64_MAX - version:020d}" if scheme is NamingScheme.V2 else str(version)
    return f"{VERSIONS}/{number}{_SUFFIX}"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Read the name of a file in ``_versions``; None if it is not a manifest's."""
    if not name.endswith(_SUFFIX):
        return None
    stem = name[: -len(_SUFFIX)]
    if len(stem) == _V2_DIGITS and stem.isdigit() and stem.isascii():
        version = _U64_MAX - int(stem)
        return ManifestName(version, NamingScheme.V2) if 0 <= version < DETACHED_BIT else None
    detached = stem.startswith("d")
    digits = stem[1:] if detached else stem
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _V2_DIGITS):
        return None
    number = int(digits)
    if detached:
        valid = DETACHED_BIT <= number <= _U64_MAX and str(number) == digits
        return ManifestName(number, NamingScheme.V2) if valid else None
    if number >= DETACHED_BIT or str(number) != digits:
        return None
    return ManifestName(number, NamingScheme.V1)


def list_numbers(names: Iterable[str], folder: str = VERSIONS) -> tuple[list[int], NamingScheme]:
    """Return the versions among ``names``, oldest first, without detached ones, and their scheme.

    Raises CorruptFileError when both naming schemes occur.
    """
    # A view lists 10,000 names every few seconds, so V2 names are recognized by digits in bulk.
    names = [name for name in names if name.endswith(_SUFFIX)]
    stems = [name[:_V2_DIGITS] for name in names if len(name) == _V2_LENGTH]
    digits = "".join(stems)
    if not (digits.isascii() and digits.isdigit()):
        stems = [stem for stem in stems if stem.isascii() and stem.isdigit()]
    new = [_U64_MAX - int(stem) for stem in stems]
    new = sorted(version for version in new if 0 <= version < DETACHED_BIT)
    short = (parse_manifest_name(name) for name in names if len(name) < _V2_LENGTH)
    old = sorted(parsed.version for parsed in short if parsed is not None and not parsed.detached)
    if old and new:
        raise _mixed(folder)
    return (old, NamingScheme.V1) if old else (new, NamingScheme.V2)


def list_versions(names: Iterable[str], folder: str = VERSIONS) -> list[ManifestName]:
    """Return the manifests among ``names``, oldest first, without detached ones.

    Raises CorruptFileError when both naming schemes occur.
    """
    numbers, scheme = list_numbers(names, folder)
    return [ManifestName(number, scheme) for number in numbers]


def latest_version(names: Iterable[str], folder: str = VERSIONS) -> ManifestName | None:
    """Return the newest manifest among ``names``, None if there is none.

    Raises CorruptFileError when both naming schemes occur.
    """
    # Every open does this, so 10,000 names are compared as text and only one is parsed.
    names = list(names)
    long = [name for name in names if len(name) == _V2_LENGTH]
    newest = parse_manifest_name(min(long)) if long else None
    if newest is not None and not newest.detached:
        if len(long) + (_HINT_NAME in names) == len(names):
            return newest
        short = [name for name in names if len(name) < _V2_LENGTH]
        if any(parse_manifest_name(name) is not None for name in short):
            raise _mixed(folder)
        return newest
    listed = list_versions(names, folder)
    return listed[-1] if listed else None


_FINISH_MIGRATION = (
    "if a migration of these names was interrupted, open the oldest version by its number and "
    "call migrate_manifest_paths_v2 again"
)


def _mixed(folder: str) -> CorruptFileError:
    return CorruptFileError(
        folder,
        None,
        "manifests of one naming scheme",
        "both V1 names (1.manifest) and V2 names (18446744073709551614.manifest)",
        advice=_FINISH_MIGRATION,
    )


# --- other files ----------------------------------------------------------------------------------


def transaction_name(read_version: int, uuid: str) -> str:
    """Return the file name that a manifest keeps in ``transaction_file``."""
    return f"{read_version}-{uuid}.txn"


def transaction_path(name: str, manifest: str = "") -> str:
    """Return the path of a transaction file named by a manifest."""
    return f"{TRANSACTIONS}/{check_relative_path(name, manifest)}"


def deletion_path(fragment_id: int, read_version: int, file_id: int, suffix: str) -> str:
    """Return the path of a deletion file; ``suffix`` is ``arrow`` or ``bin``."""
    return f"{DELETIONS}/{fragment_id}-{read_version}-{file_id}.{suffix}"


def data_path(name: str, manifest: str = "") -> str:
    """Return the path of a data file named by a manifest. Raises CorruptFileError if it escapes."""
    return f"{DATA}/{check_relative_path(name, manifest)}"


def index_folder(uuid: str, manifest: str = "") -> str:
    """Return the folder of an index."""
    return f"{INDICES}/{check_relative_path(uuid, manifest)}"


def tag_path(name: str) -> str:
    """Return the path of a tag's file; the name must have been checked."""
    return f"{TAGS}/{quote(name, safe='')}.json"


def branch_path(name: str) -> str:
    """Return the path of a branch's file; the name must have been checked."""
    return f"{BRANCHES}/{quote(name, safe='')}.json"


def branch_root(name: str) -> str:
    """Return the folder of a branch below the root of the dataset."""
    return f"{TREE}/{name}"


def parse_ref_file_name(file_name: str) -> str | None:
    """Return the tag or branch name of a file of ``_refs``, None for other files."""
    if not file_name.endswith(".json"):
        return None
    stem = file_name.removesuffix(".json")
    return unquote(stem) or None


def check_relative_path(path: str, where: str = "") -> str:
    """Return ``path`` if it cannot leave the folder it is relative to.

    ``where`` is the file that named it. Percent-encoded slashes and dots are refused as well: an
    HTTP server would decode them. Raises CorruptFileError.
    """
    if _PLAIN_PATH.fullmatch(path):  # nearly all are plain
        return path
    lowered = path.lower()
    bad = (
        not path
        or "\0" in path
        or "\\" in path
        or path[1:2] == ":"
        or any(unquote(segment) in ("", ".", "..") for segment in path.split("/"))
        or "%2f" in lowered
        or "%5c" in lowered
        or "://" in path
    )
    if bad:
        raise CorruptFileError(
            where, None, "a path inside the dataset", f"{path[:200]!r}: the path leaves the dataset"
        )
    return path
