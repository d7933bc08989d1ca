"""Where the bytes of a dataset are: by version, tag, branch, kind, and what nobody refers to.

Tables (sizes in bytes; every byte of the folder is in ``files`` once)::

    files     path, kind, size_bytes, branch, state, num_versions, oldest, newest
    versions  branch, version, timestamp, tags, manifest_bytes, referenced_bytes, exclusive_bytes
    refs      kind (tag or branch), name, branch, version, referenced_bytes, exclusive_bytes
    kinds     kind, num_files, size_bytes, orphan_bytes

``state`` of a file: *current* (the newest version of a branch refers to it), *old* (only older ones
do), *orphan* (none does), *bookkeeping* (manifests, transactions, refs, hints), *other*.
``exclusive_bytes`` of a version: what only this version refers to, with its manifest and
transaction. Of a tag: what would go if only the newest version of each branch and the versions
other tags and branches stand on stayed. Of a branch: what only versions of this branch refer to,
with its own folder.

Limits: manifests and one listing are read, nothing else. Files under other base paths are not part
of the folder. A manifest that cannot be read is listed in ``damaged``; what only it refers to looks
like an orphan.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from lance_nb.table.file_references import References
from lance_nb.table.retention import RetentionPolicy
from lance_nb.table.space_account import Freed, SpaceAccount, WhatIf
from lance_nb.table.space_tables import file_table, kind_table, ref_table, totals, version_table
from lance_nb.table.survey import Survey

__all__ = ["Freed", "Space", "space_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Space:
    """The bytes of one dataset; see the module for its tables."""

    uri: str
    num_files: int
    total_bytes: int
    current_bytes: int
    old_bytes: int
    orphan_bytes: int
    bookkeeping_bytes: int
    other_bytes: int
    files: pa.Table
    versions: pa.Table
    refs: pa.Table
    kinds: pa.Table
    damaged: tuple[str, ...]
    _account: SpaceAccount = field(compare=False)

    def freed_if(
        self,
        *,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        versions: Collection[int] | None = None,
        drop_tags: Collection[str] = (),
        drop_branches: Collection[str] = (),
        branch: str | None = None,
        delete_unverified: bool = False,
    ) -> Freed:
        """Return what would be freed by deleting these refs and then cleaning up ``branch``.

        The rules are those of ``cleanup_old_versions``; without any, only what the dropped
        branches and old orphans take is counted. Reads nothing again. Raises RefNotFoundError,
        CleanupError.
        """
        rules = (older_than, retain_versions, versions)
        policy = None
        if any(one is not None for one in rules):
            policy = RetentionPolicy.of(
                *rules, delete_unverified=delete_unverified, error_if_tagged_old_versions=False
            )
        what_if = WhatIf(frozenset(drop_tags), frozenset(drop_branches), branch, delete_unverified)
        return self._account.freed(policy, what_if)

    def __repr__(self) -> str:
        lines = [f"{self.uri}: {self.total_bytes:,} bytes in {self.num_files:,} files"]
        for name in ("current", "old", "orphan", "bookkeeping", "other"):
            size = getattr(self, f"{name}_bytes")
            share = size / self.total_bytes if self.total_bytes else 0.0
            lines.append(f"  {name:<12}{size:>18,}  {share:>6.1%}")
        for row in self.refs.to_pylist():
            place = f"{row['branch'] or 'main'}:{row['version']}"
            held = f"{row['exclusive_bytes']:,} bytes of its own"
            lines.append(f"  {row['kind']} {row['name']!r} at {place} holds {held}")
        lines += [f"  damaged: {text}" for text in self.damaged]
        return "\n".join(lines)


def space_of(survey: Survey, references: References, now: datetime) -> Space:
    """Account for every byte. ``references`` are of all versions of all branches."""
    account = SpaceAccount.of(survey, references, now)
    files = file_table(account)
    sums = totals(files)
    damaged = tuple(str(one.error) for one in survey.unusable)
    damaged += tuple(
        f"{survey.store(line.home).uri}/{name.path}: {error}"
        for line in references.lines.values()
        for name, error in line.damaged
    )
    return Space(
        uri=survey.root.uri,
        num_files=len(survey.files),
        total_bytes=sum(sums.values()),
        current_bytes=sums["current"],
        old_bytes=sums["old"],
        orphan_bytes=sums["orphan"],
        bookkeeping_bytes=sums["bookkeeping"],
        other_bytes=sums["other"],
        files=files,
        versions=version_table(account),
        refs=ref_table(account),
        kinds=kind_table(files),
        damaged=damaged,
        _account=account,
    )
