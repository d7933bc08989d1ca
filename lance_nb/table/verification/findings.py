"""The findings of a verification, and the random sample of files that it may read.

Table of findings: severity, code, branch, version, fragment, path, message, remedy. The ``code`` of
a finding is stable: programs may compare it. ``CODES`` lists all codes with their severity and
remedy.

Severities: an *error* is lost or wrong data, or something that cannot be opened; a *warning* works
today, but not for every reader or not for ever; a *note* is harmless and worth knowing.

A sample draws files in random order until they have the wanted share of the bytes. So a large file
counts for what it costs to read, no file is too large to be chosen, and the bytes that are read
exceed the share by less than one file. The same seed and the same files give the same sample.

Limits: where several findings have one cause, the cause alone is listed as far as it is known. At
most ``FINDINGS_MAX`` findings of a code are kept; the rest are counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.format.transaction_summary import count_of
from lance_nb.value_classes import dataclass

_SEED_MAX = 2**32


@dataclass(frozen=True, slots=True)
class Sample:
    """The files of a sample by identity; their number and bytes, and those of all files."""

    chosen: frozenset[str]
    num_files: int
    num_files_in_all: int
    size_bytes: int
    size_bytes_in_all: int
    seed: int

    @property
    def share(self) -> float:
        """How much of the bytes of all files is read, up to 1.0."""
        return self.size_bytes / self.size_bytes_in_all if self.size_bytes_in_all else 1.0

    def __str__(self) -> str:
        return (
            f"a sample of {self.num_files:,} of {self.num_files_in_all:,} files, "
            f"{self.size_bytes:,} of {self.size_bytes_in_all:,} bytes ({self.share:.1%}), "
            f"seed {self.seed}"
        )


def choose_sample(sizes: Mapping[str, int], amount: float, seed: int | None = None) -> Sample:
    """Choose files at random: a share of the bytes (a float up to 1.0), or a number of files.

    ``sizes`` are sizes in bytes by identity. Without ``seed`` a random one is used; the result
    has it. Raises InvalidInputError for another number.
    """
    is_share = isinstance(amount, float)
    if isinstance(amount, bool) or not (0 < amount <= 1 if is_share else amount >= 1):
        raise InvalidInputError(
            f"sample is a share of the bytes (above 0.0, up to 1.0) or a number of files "
            f"(1, 2, ...), not {amount!r}"
        )
    seed = random.SystemRandom().randrange(_SEED_MAX) if seed is None else seed
    order = sorted(sizes)
    random.Random(seed).shuffle(order)  # noqa: S311 (no secret)
    total = sum(sizes.values())
    chosen = _until(order, sizes, amount * total) if is_share else order[: int(amount)]
    if amount == 1 and is_share:
        chosen = order  # files of no bytes too
    read = sum(sizes[name] for name in chosen)
    return Sample(
        frozenset(chosen),
        len(chosen),
        len(order),
        size_bytes=read,
        size_bytes_in_all=total,
        seed=seed,
    )


def _until(order: Sequence[str], sizes: Mapping[str, int], size_bytes: float) -> list[str]:
    """Return the first files in the order that have so many bytes together, at least one."""
    chosen: list[str] = []
    read = 0
    for name in order:
        if chosen and read >= size_bytes:
            break
        chosen.append(name)
        read += sizes[name]
    return chosen


ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)
FINDINGS_MAX = 1000

FINDINGS = pa.schema(
    [
        ("severity", pa.string()),
        ("code", pa.string()),
        ("branch", pa.string()),
        ("version", pa.uint64()),
        ("fragment", pa.uint64()),
        ("path", pa.string()),
        ("message", pa.string()),
        ("remedy", pa.string()),
    ]
)
"""The schema of ``Verification.to_table``."""

_SHOWN = 20
_COPY = "put the file back from a copy, or restore a version that does not use it"
_OPEN_OLDER = "put the file back from a copy; other versions open without it"
_REPAIR = "doctor --repair mends it"
_REPORT = "do not write to the dataset; restore a version before this one and keep the files"
_REBUILD = "drop the index and build it again"
_REFS = "delete it and create it again"
_COMMIT_ONCE = "commit once: until then, commits that run at the same time fail"
_NONE_READABLE = (
    "put a manifest back from a copy: there is nothing that a repair could go back to. The rows of "
    "a data file can be read without one: lance_nb.LanceFileReader(path)"
)
_HARMLESS = "nothing: readers do without it"


class Code(NamedTuple):
    """What findings of one code have in common."""

    severity: str
    remedy: str


CODES: Mapping[str, Code] = {
    # the dataset as a whole
    "no-versions": Code(
        ERROR, "put the manifests back from a copy, or delete the folder if the table was dropped"
    ),
    "half-dropped": Code(
        ERROR,
        "put the files back from a copy, or drop the table once more: lance_nb.LanceDataset.drop",
    ),
    "naming-mixed": Code(ERROR, "move the manifests of the scheme with fewer versions away"),
    "newest-unreadable": Code(ERROR, _REPAIR),
    "none-readable": Code(ERROR, _NONE_READABLE),
    "newest-missing": Code(ERROR, f"put the manifests back from a copy, or {_REPAIR}"),
    "version-gap": Code(WARNING, "put the manifests back, if nobody deleted them on purpose"),
    "hint-unreadable": Code(WARNING, _REPAIR),
    "hint-missing": Code(NOTE, _REPAIR),
    "hint-stale": Code(NOTE, _REPAIR),
    "leftover-file": Code(NOTE, _REPAIR),
    "staged-manifest": Code(WARNING, "open the dataset with its manifest store, which finishes it"),
    # tags and branches
    "tag-unreadable": Code(ERROR, _REFS),
    "tag-dangling": Code(ERROR, _REFS),
    "tag-manifest-size": Code(WARNING, _REFS),
    "branch-unreadable": Code(ERROR, _REPAIR),
    "branch-name": Code(ERROR, "delete the record, and create the branch under another name"),
    "branch-without-versions": Code(ERROR, _REPAIR),
    "branch-without-record": Code(WARNING, _REPAIR),
    "branch-parent-missing": Code(WARNING, "none: the branch can be read, but not be merged"),
    "branch-manifest-size": Code(NOTE, _HARMLESS),
    "branch-mixed": Code(
        ERROR, "restore the version before it, or delete the branch and create it again"
    ),
    # manifests
    "manifest-unreadable": Code(ERROR, _OPEN_OLDER),
    "manifest-not-supported": Code(WARNING, "verify it with a newer lance_nb"),
    "manifest-branch": Code(ERROR, _REPORT),
    "flags-missing": Code(WARNING, "commit once: the flags are computed again"),
    "max-fragment-id": Code(ERROR, _REPORT),
    "next-row-id": Code(ERROR, _REPORT),
    "field-type": Code(ERROR, "use a newer lance_nb, if the type is of a newer writer"),
    "fragment-id-repeated": Code(WARNING, "rewrite the dataset (mode='overwrite')"),
    "fragment-order": Code(WARNING, "commit once: the next version sorts them"),
    "fragment-counts": Code(WARNING, "commit once: the next version records them"),
    "file-versions-mixed": Code(WARNING, "rewrite the dataset (mode='overwrite')"),
    "base-id-repeated": Code(ERROR, _REPORT),
    "base-unknown": Code(ERROR, _REPORT),
    "base-moved": Code(WARNING, "ds.repair_moved(): pylance follows the old path"),
    "base-not-allowed": Code(WARNING, "open the dataset with allow_bases, if you trust the place"),
    # from one version to the next
    "fragment-lost": Code(ERROR, "restore the version before"),
    "deletions-lost": Code(ERROR, "restore the version before: deleted rows have come back"),
    "file-entry-changed": Code(ERROR, "restore the version before"),
    "index-entry-changed": Code(ERROR, _REBUILD),
    "config-lost": Code(ERROR, "make the change again, or restore the version before"),
    "columns-lost": Code(ERROR, "restore the version before, and make the change again"),
    # transactions
    "transaction-missing": Code(WARNING, _COMMIT_ONCE),
    "transaction-file-missing": Code(NOTE, "nothing: the manifest holds a copy"),
    "transaction-unreadable": Code(WARNING, _COMMIT_ONCE),
    "transaction-mismatch": Code(WARNING, "commit once, so that no writer compares with it"),
    # data files
    "data-file-missing": Code(ERROR, _COPY),
    "data-file-size": Code(ERROR, _COPY),
    "data-file-damaged": Code(ERROR, _COPY),
    "file-not-supported": Code(WARNING, "verify it with a newer lance_nb"),
    "data-file-rows": Code(ERROR, _COPY),
    "data-file-columns": Code(ERROR, _COPY),
    "fragment-without-files": Code(ERROR, _REPORT),
    "fields-repeated": Code(WARNING, "commit once: the next version gives one of them a new id"),
    "fields-unknown": Code(WARNING, "nothing: the file is not read for these fields"),
    "field-not-stored": Code(ERROR, _COPY),
    "values-damaged": Code(ERROR, _COPY),
    # checksums
    "checksum-wrong": Code(ERROR, _COPY),
    "checksum-record-damaged": Code(
        WARNING, "delete the record, then ds.add_checksums(), if nothing else is wrong"
    ),
    # deleted rows, row ids
    "deletion-file-missing": Code(ERROR, f"{_COPY}: deleted rows cannot be told"),
    "deletion-file-damaged": Code(ERROR, f"{_COPY}: deleted rows cannot be told"),
    "row-ids-missing": Code(ERROR, _REPORT),
    "row-ids-damaged": Code(ERROR, _REPORT),
    "row-ids-repeated": Code(ERROR, _REPORT),
    "row-versions-damaged": Code(ERROR, _REPORT),
    # indices
    "index-missing": Code(ERROR, _REBUILD),
    "index-file-missing": Code(ERROR, _REBUILD),
    "index-file-size": Code(ERROR, _REBUILD),
    "index-damaged": Code(ERROR, _REBUILD),
    "index-rows-missing": Code(ERROR, _REBUILD),
    "index-rows-unknown": Code(ERROR, _REBUILD),
    "index-rows-repeated": Code(ERROR, _REBUILD),
    "index-values-wrong": Code(ERROR, _REBUILD),
    "index-field": Code(ERROR, "drop the index"),
    "index-uuid-repeated": Code(ERROR, _REBUILD),
    "index-coverage-unknown": Code(WARNING, _REBUILD),
    "index-coverage-overlaps": Code(WARNING, "optimize the indices once"),
}  # fmt: skip
"""Every code of a finding: how bad it is, and what to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. Listed by ``Verification.findings``.

    ``version`` is the newest that is concerned, None where it is the dataset; ``fragment`` an id.
    ``path`` is below the root of the branch, or the name of a tag or branch.

    Examples:
        >>> import os
        >>> ds.tags.create("first")
        >>> os.truncate(f"{uri}/_refs/tags/first.json", 9)
        >>> finding = lance_nb.verify(uri).findings[0]
        >>> finding.code, finding.severity, finding.where
        ('tag-unreadable', 'error', '_refs/tags/first.json')
        >>> finding.remedy
        'delete it and create it again'
        >>> finding.record()["path"]
        '_refs/tags/first.json'
    """

    code: str
    message: str
    path: str = ""
    branch: str | None = None
    version: int | None = None
    fragment: int | None = None
    error: LanceError | None = field(default=None, compare=False, repr=False)

    @property
    def severity(self) -> str:
        """How bad it is: error, warning or note."""
        return CODES[self.code].severity

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return CODES[self.code].remedy

    def __str__(self) -> str:
        return _printable(f"{self.severity} {self.code}: {self.where}: {self.message}")

    @property
    def where(self) -> str:
        """Version, file and fragment in words, as far as they are known."""
        parts = [self.path] if self.path else []
        if self.version is not None:
            parts.append(f"version {self.branch or 'main'}:{self.version}")
        if self.fragment is not None:
            parts.append(f"fragment {self.fragment}")
        return ", ".join(parts) or "dataset"

    def record(self) -> dict[str, Any]:
        """Return the values of a row of the table of findings."""
        return {name: getattr(self, name) for name in FINDINGS.names}


class Bounded:
    """Findings, at most so many of one code; ``left_out`` counts the others by code."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.left_out: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """Take findings."""
        for finding in findings:
            count = self._counts[finding.code] = self._counts.get(finding.code, 0) + 1
            if count <= FINDINGS_MAX:
                self.findings.append(finding)
            else:
                self.left_out[finding.code] = count - FINDINGS_MAX


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """What was looked at, and what is wrong with it. Created by ``LanceDataset.verify``.

    ``opened_version`` is the newest version of main that can be read, None if there is none.
    ``num_values`` counts rows times columns decoded. Orphans are no finding: a clean-up deletes
    them. ``num_files_checked`` have been compared with a checksum, of
    ``num_files_without_checksum`` there is none: the format has no checksums, and only files that
    this library wrote into a dataset with ``checksums=True`` have one. With ``sample``, only those
    files were read.

    Examples:
        >>> report = ds.verify()
        >>> report.ok, report.verdict, report.of("error"), report.to_table().num_rows
        (True, 'whole', [], 0)
        >>> next(report.lines())
        '1 version, 2 fragments, 2 data files, 0 deletion files, 0 indices'
        >>> report.checksums
        '0 files checked, 2 without checksum'
    """

    uri: str
    opened_version: int | None
    num_versions: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    num_indices: int
    num_values: int
    num_orphans: int
    orphan_bytes: int
    findings: tuple[Finding, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()
    num_files_checked: int = 0
    num_files_without_checksum: int = 0
    sample: Sample | None = None

    @property
    def checksums(self) -> str:
        """How many files were compared with their checksums, in words."""
        checked = count_of(self.num_files_checked, "file")
        return f"{checked} checked, {self.num_files_without_checksum:,} without checksum"

    @property
    def ok(self) -> bool:
        """Whether there are no errors and no warnings."""
        return all(finding.severity == NOTE for finding in self.findings)

    def of(self, severity: str) -> list[Finding]:
        """Return the findings of a severity, in the order in which they were found."""
        return [finding for finding in self.findings if finding.severity == severity]

    def to_table(self) -> pa.Table:
        """Return the findings as Arrow, the errors first."""
        ordered = chain.from_iterable(map(self.of, SEVERITIES))
        return pa.Table.from_pylist([finding.record() for finding in ordered], schema=FINDINGS)

    @property
    def verdict(self) -> str:
        """The outcome in a few words: ``whole``, or ``2 errors, 1 note``."""
        counted = [(severity, self._count(severity)) for severity in SEVERITIES]
        counts = ", ".join(count_of(count, severity) for severity, count in counted if count)
        return f"whole, {counts}" if counts and self.ok else counts or "whole"

    def _count(self, severity: str) -> int:
        more = sum(n for code, n in self.left_out.items() if CODES[code].severity == severity)
        return len(self.of(severity)) + more

    def lines(self) -> Iterator[str]:
        """Yield what was looked at, in words."""
        counts = {
            "version": self.num_versions,
            "fragment": self.num_fragments,
            "data file": self.num_data_files,
            "deletion file": self.num_deletion_files,
            "index": self.num_indices,
        }
        yield ", ".join(count_of(count, key) for key, count in counts.items())
        yield f"{count_of(self.num_values, 'value')} decoded; checksums: {self.checksums}"
        if self.sample is not None:
            yield f"content read: {self.sample}"
        orphans = count_of(self.num_orphans, "file")
        yield f"{orphans} without a version ({self.orphan_bytes:,} bytes)"

    def __repr__(self) -> str:
        lines = [f"{self.uri}: {self.verdict}", *(f"  {line}" for line in self.lines())]
        ordered = list(chain.from_iterable(map(self.of, SEVERITIES)))
        for finding in ordered[:_SHOWN]:
            lines += [f"  ! {finding}", f"    to do: {finding.remedy}"]
        left = len(ordered) - _SHOWN + sum(self.left_out.values())
        return "\n".join([*lines, *([f"  ... and {left:,} more"] if left > 0 else [])])


def _printable(text: str) -> str:
    """Escape what a terminal would obey: names come from files that anybody may have written."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )
