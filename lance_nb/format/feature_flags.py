"""Feature flags: the features that a dataset requires of readers and writers.

Layout: two 64-bit words in the manifest. A reader must refuse a dataset with an unknown bit in the
reader word before it reads any fragment, because it would read the dataset wrongly. Unknown bits in
the writer word only forbid writing.

Limits: some features must be set in both words or in none; anything else is damage.
Source: lance-table ``feature_flags`` as enforced by pylance 14.0.2.
"""

from __future__ import annotations

from typing import Protocol

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.value_classes import dataclass

DELETION_FILES = 1 << 0
STABLE_ROW_IDS = 1 << 1
V2_FORMAT = 1 << 2
TABLE_CONFIG = 1 << 3
BASE_PATHS = 1 << 4
NO_TRANSACTION_FILES = 1 << 5
DATA_OVERLAY_FILES = 1 << 6
COVERING_INDEX_METADATA = 1 << 7
MIXED_FILE_VERSIONS = 1 << 8
FRAGMENT_REUSE_WITH_ROW_IDS = 1 << 9
TAGGED_FRAGMENT_REUSE = 1 << 10
SPILLED_ROW_LINEAGE = 1 << 11
FRAGMENT_TREE = 1 << 12
INDEPENDENT_COVERING_FIELDS = 1 << 13
MANAGED_BLOBS = 1 << 14
FIELD_IDS_NOT_REUSED = 1 << 15
ZONE_WRITE_SEED = 1 << 16


@dataclass(frozen=True, slots=True)
class FeatureFlag:
    """One bit. ``both_or_none``: it is in both words or in neither."""

    bit: int
    name: str
    meaning: str
    can_read: bool
    can_write: bool
    both_or_none: bool = False


FLAGS: tuple[FeatureFlag, ...] = (
    FeatureFlag(
        DELETION_FILES,
        "deletion files",
        "some rows are marked deleted",
        can_read=True,
        can_write=True,
    ),
    FeatureFlag(
        STABLE_ROW_IDS,
        "stable row ids",
        "every fragment carries row ids",
        can_read=True,
        can_write=True,
    ),
    FeatureFlag(V2_FORMAT, "v2 format", "historical, never written", can_read=True, can_write=True),
    FeatureFlag(
        TABLE_CONFIG, "table config", "the manifest has a config map", can_read=True, can_write=True
    ),
    FeatureFlag(
        BASE_PATHS, "base paths", "files may lie under other roots", can_read=True, can_write=True
    ),
    FeatureFlag(
        NO_TRANSACTION_FILES,
        "no transaction files",
        "transactions are inline only",
        can_read=True,
        can_write=True,
    ),
    FeatureFlag(
        DATA_OVERLAY_FILES,
        "data overlay files",
        "cells are replaced by overlays",
        can_read=False,
        can_write=False,
    ),
    FeatureFlag(
        COVERING_INDEX_METADATA,
        "covering index metadata",
        "indices hold column copies",
        can_read=True,
        can_write=True,
    ),
    FeatureFlag(
        MIXED_FILE_VERSIONS,
        "mixed file versions",
        "data files differ in version",
        can_read=True,
        can_write=True,
        both_or_none=True,
    ),
    FeatureFlag(
        FRAGMENT_REUSE_WITH_ROW_IDS,
        "fragment reuse with stable row ids",
        "a fragment-reuse index maps row ids",
        can_read=False,
        can_write=False,
    ),
    FeatureFlag(
        TAGGED_FRAGMENT_REUSE,
        "tagged fragment-reuse index",
        "the fragment-reuse index has tagged entries",
        can_read=True,
        can_write=True,
        both_or_none=True,
    ),
    FeatureFlag(
        SPILLED_ROW_LINEAGE,
        "spilled row lineage",
        "row ids lie in hidden columns",
        can_read=True,
        can_write=True,
    ),
    FeatureFlag(
        FRAGMENT_TREE,
        "fragment tree",
        "fragments are not listed in the manifest",
        can_read=False,
        can_write=False,
    ),
    FeatureFlag(
        INDEPENDENT_COVERING_FIELDS,
        "independent covering fields",
        "indices hold columns they do not index",
        can_read=False,
        can_write=False,
    ),
    FeatureFlag(
        MANAGED_BLOBS,
        "managed blobs",
        "blob files are owned by the dataset",
        can_read=True,
        can_write=True,
        both_or_none=True,
    ),
    FeatureFlag(
        FIELD_IDS_NOT_REUSED,
        "field ids are not reused",
        "the manifest says which field id was the highest ever; announced to writers only",
        can_read=False,
        can_write=True,
    ),
    FeatureFlag(
        ZONE_WRITE_SEED,
        "zone write seed",
        "zone maps are written from a seed",
        can_read=False,
        can_write=False,
        both_or_none=True,
    ),
)

_READABLE = sum(flag.bit for flag in FLAGS if flag.can_read)
_WRITABLE = sum(flag.bit for flag in FLAGS if flag.can_write)
_BOTH_OR_NONE = tuple(flag for flag in FLAGS if flag.both_or_none)


class Flagged(Protocol):
    """The attributes of a manifest that these checks use."""

    @property
    def reader_feature_flags(self) -> int:
        """The reader word."""
        ...

    @property
    def writer_feature_flags(self) -> int:
        """The writer word."""
        ...

    @property
    def writer_version(self) -> object | None:
        """The library that wrote it, as text."""
        ...

    @property
    def path(self) -> str:
        """The file it came from."""
        ...


def check_readable(manifest: Flagged) -> None:
    """Refuse a dataset that this release would read wrongly.

    Raises NotSupportedError naming the bits and the writer; CorruptFileError when a flag that must
    be in both words is in one.
    """
    reader, writer = manifest.reader_feature_flags, manifest.writer_feature_flags
    if reader & FIELD_IDS_NOT_REUSED:
        raise CorruptFileError(
            manifest.path, None, "feature bit 15 in the writer word only", "it in the reader word"
        )
    _refuse(reader & ~_READABLE, manifest, "reading", "reader")
    for flag in _BOTH_OR_NONE if reader ^ writer else ():
        if bool(reader & flag.bit) != bool(writer & flag.bit):
            word = "reader" if reader & flag.bit else "writer"
            expected = f"feature {flag.name!r} in both words or none"
            raise CorruptFileError(manifest.path, None, expected, f"it in the {word} word only")


def check_writable(manifest: Flagged) -> None:
    """Refuse to write to a dataset with features this release would break; also checks reading."""
    check_readable(manifest)
    _refuse(manifest.writer_feature_flags & ~_WRITABLE, manifest, "writing", "writer")


def describe(word: int) -> list[str]:
    """Return the names of the bits set in a word."""
    named = {flag.bit: flag.name for flag in FLAGS}
    bits = [1 << number for number in range(max(word, 0).bit_length()) if word >> number & 1]
    return [named.get(bit, f"unknown (bit {bit.bit_length() - 1})") for bit in bits]


def _refuse(bits: int, manifest: Flagged, action: str, word: str) -> None:
    if not bits:
        return
    writer = manifest.writer_version
    author = f" It was written by {writer}." if writer is not None else ""
    raise NotSupportedError(
        f"{action} this dataset needs features this release does not have: "
        f"{', '.join(describe(bits))} ({word} flags {bits:#x} in "
        f"{manifest.path or 'the manifest'}).{author} Use a newer lance_nb."
    )
