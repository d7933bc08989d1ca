"""What a verification has found: a value to read and to print.

Table of problems: kind, branch, version, path, message. ``kind`` is one of manifest, missing file,
unreachable, data file, deletion file, row ids, fragment, values, index, tag, branch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from lance_nb.errors import LanceError

PROBLEMS = pa.schema(
    [
        ("kind", pa.string()),
        ("branch", pa.string()),
        ("version", pa.uint64()),
        ("path", pa.string()),
        ("message", pa.string()),
    ]
)
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. ``version``: the newest that is concerned, None for the dataset."""

    kind: str
    branch: str | None
    version: int | None
    path: str
    message: str
    error: LanceError | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        place = "" if self.version is None else f" ({self.branch or 'main'}:{self.version})"
        return f"{self.kind}: {self.path}{place}: {self.message}"


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """What was looked at, and what is wrong with it.

    ``num_values`` counts rows times columns decoded. Orphans are no problem: a clean-up
    deletes them. ``checksums`` says which were compared: the format has none.
    """

    uri: str
    num_versions: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    num_indices: int
    num_values: int
    num_orphans: int
    orphan_bytes: int
    problems: tuple[Problem, ...] = ()
    orphans: tuple[str, ...] = ()
    checksums: str = "none: neither manifests nor data files record any"

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_table(self) -> pa.Table:
        """Return the problems as Arrow."""
        rows = [{name: getattr(one, name) for name in PROBLEMS.names} for one in self.problems]
        return pa.Table.from_pylist(rows, schema=PROBLEMS)

    def __repr__(self) -> str:
        verdict = "whole" if self.is_whole else f"{len(self.problems)} problem(s)"
        counts = ("versions", "fragments", "data_files", "deletion_files", "indices")
        lines = [
            f"{self.uri}: {verdict}",
            "  "
            + ", ".join(f"{getattr(self, f'num_{one}')} {one.replace('_', ' ')}" for one in counts),
            f"  {self.num_values:,} values decoded; checksums: {self.checksums}",
            f"  {self.num_orphans} files without a version ({self.orphan_bytes:,} bytes)",
        ]
        lines += [f"  ! {one}" for one in self.problems[:_SHOWN]]
        left = len(self.problems) - _SHOWN
        return "\n".join([*lines, *([f"  ... and {left} more"] if left > 0 else [])])
