"""What the numbers of ``space()`` are taken from, and the simulation of a clean-up on it.

The same survey, the same references, the same rules and the same plan as a real clean-up uses: what
is simulated is what happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from lance_nb.errors import RefNotFoundError
from lance_nb.format.layout import ManifestName, branch_path, branch_root, tag_path
from lance_nb.table.cleanup_plan import Rule, make_plan
from lance_nb.table.file_references import Ints, Mask, References, Spans
from lance_nb.table.retention import Age, Protection, RetentionPolicy, removable
from lance_nb.table.survey import LineOfVersions, Survey


@dataclass(frozen=True, slots=True)
class Freed:
    """What a clean-up would free. ``paths`` are the files that would go."""

    size_bytes: int
    num_versions: int
    num_files: int
    paths: tuple[str, ...] = field(repr=False, default=())


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Refs that are taken for deleted, the branch that is cleaned up, and whether orphans go."""

    tags: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    branch: str | None = None
    delete_unverified: bool = False


@dataclass(frozen=True, slots=True)
class SpaceAccount:
    """The survey and the references that every number is taken from.

    ``sizes``: of each identity, all its files together. ``spans``: of each line, by folder.
    """

    survey: Survey
    references: References
    now: datetime
    sizes: Ints
    spans: Mapping[str, Spans]

    @classmethod
    def of(cls, survey: Survey, references: References, now: datetime) -> SpaceAccount:
        """Add up the files of each identity."""
        known = references.known([one.identity for one in survey.files])
        size_bytes = (one.size_bytes for one in survey.files)
        bytes_each = np.fromiter(size_bytes, np.int64, len(survey.files))
        sizes = np.zeros(len(references), np.int64)
        np.add.at(sizes, known[known >= 0], bytes_each[known >= 0])
        spans = {folder: line.spans() for folder, line in references.lines.items()}
        return cls(survey, references, now, sizes, spans)

    # --- what would be freed ----------------------------------------------------------------------

    def freed(self, policy: RetentionPolicy | None, what_if: WhatIf) -> Freed:
        """Simulate; see ``Space.freed_if``."""
        survey = self._without_refs(what_if)
        gone = {
            branch_root(name): {0, *survey.lines[branch_root(name)].numbers}  # 0: detached ones
            for name in what_if.branches
            if branch_root(name) in survey.lines
        }
        folder = "" if what_if.branch is None else branch_root(what_if.branch)
        if folder not in survey.lines or folder in gone:
            raise RefNotFoundError("branch", str(what_if.branch), tuple(self.survey.branches))
        line = survey.lines[folder]
        names = [] if policy is None else self._removable(survey, line, policy)
        rule = Rule(self.now, what_if.delete_unverified)
        plan = make_plan(survey, self.references, folder, names, rule, also_gone=gone)
        records = {*map(tag_path, what_if.tags), *map(branch_path, what_if.branches)}
        dropped = [one for one in self.survey.files if one.home in gone or one.path in records]
        found = [*(one.file for one in plan.candidates), *dropped]
        num_versions = len(names) + sum(len(one) - 1 for one in gone.values())
        size = sum(one.size_bytes for one in found)
        return Freed(size, num_versions, len(found), tuple(one.path for one in found))

    def _without_refs(self, what_if: WhatIf) -> Survey:
        for kind, names, known in (
            ("tag", what_if.tags, self.survey.tags),
            ("branch", what_if.branches, self.survey.branches),
        ):
            for name in sorted(names - known.keys()):
                raise RefNotFoundError(kind, name, tuple(known))
        return self.survey.without(what_if.tags, what_if.branches)

    def _removable(
        self, survey: Survey, line: LineOfVersions, policy: RetentionPolicy
    ) -> list[ManifestName]:
        times = {
            one.version: moment_of(one.timestamp_ns)
            for one in self.references.lines[line.folder].versions
        }
        age = Age(
            self.now,
            lambda name: times.get(name.version),
            lambda name: (found := survey.manifest(line.folder, name)) and found.modified,
        )
        protection = Protection(
            survey.tagged_versions(line.branch), survey.fork_versions(line.branch)
        )
        newest = line.numbers[-1] if line.names else 0
        return removable(policy, line.names, newest, age, protection)

    # --- who holds what ---------------------------------------------------------------------------

    def held(self, chosen: dict[str, Mask]) -> Mask:
        """Tell which identities the chosen versions (folder -> one item per version) refer to."""
        found = np.zeros(len(self.references), np.bool_)
        for folder, mask in chosen.items():
            spans = self.spans[folder]
            found[spans.identity[spans.touching(mask)]] = True
        return found

    def bytes_of(self, identities: Mask) -> int:
        """Add up the files of identities."""
        return int(self.sizes[: len(identities)][identities].sum())


def moment_of(timestamp_ns: int | None) -> datetime | None:
    """Return a commit time as an aware datetime (microseconds)."""
    if timestamp_ns is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=timestamp_ns // 1000)
