"""Preview a retention rule: which versions go, which stay and why, and who keeps a file.

Layout of ``retention_state`` (when the control is opened)::

    branch, label, versions, oldest_days, tags [{name, label, version}], hidden_tags, damaged

Layout of ``retention_move`` (for each rule)::

    versions, files, bytes, size (text), goes [[first, last]], stays [[first, last, reason]]

``goes`` and ``stays`` are runs of version numbers, and cover all versions of the branch. Layout of
``retention_files``: ``{version, goes, reason, files: [{name, size, goes, kept}]}``; ``kept`` names
who keeps a file.

Limits: ``MAX_TAGS`` tags are offered, ``MAX_FILES`` files listed, the largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lance_nb.explorer import text
from lance_nb.table.retention_simulation import (
    MAX_KEEPERS,
    FileFate,
    RetentionRule,
    RetentionSimulator,
)

MAX_TAGS = 24
MAX_FILES = 8


def retention_state(simulator: RetentionSimulator, num_damaged: int) -> dict[str, Any]:
    """Return what the control offers."""
    tags = sorted(simulator.tags.items(), key=lambda tag: (-tag[1], tag[0]))
    return {
        "branch": simulator.branch,
        "label": text.name(simulator.branch or "main"),
        "versions": len(simulator.numbers),
        "oldest_days": simulator.oldest / timedelta(days=1),
        "tags": [
            {
                "name": name,
                "label": text.name(name),
                "version": version,
            }
            for name, version in tags[:MAX_TAGS]
        ],
        "hidden_tags": max(0, len(tags) - MAX_TAGS),
        "damaged": num_damaged,
    }


def retention_move(simulator: RetentionSimulator, rule: RetentionRule) -> dict[str, Any]:
    """Return what a rule removes and keeps."""
    simulation = simulator.simulate(rule)
    reasons = _reasons(simulator, rule, simulation.removed.tolist())
    runs = _runs(simulator.numbers, reasons)
    return {
        "versions": len(simulation.numbers),
        "files": simulation.num_files,
        "bytes": simulation.size_bytes,
        "size": text.size(simulation.size_bytes),
        "goes": [[first, last] for first, last, reason in runs if not reason],
        "stays": [[first, last, reason] for first, last, reason in runs if reason],
    }


def _reasons(
    simulator: RetentionSimulator, rule: RetentionRule, removed: Sequence[bool]
) -> list[str]:
    """Say of each version why it stays; empty for those that go."""
    protection = simulator.protection(rule.drop_tags)
    tags = {
        version: f"tag {', '.join(map(text.name, names[:MAX_KEEPERS]))}"
        for version, names in protection.tags.items()
    }
    forks = {
        version: f"branch {', '.join(map(text.name, names[:MAX_KEEPERS]))} started here"
        for version, names in protection.forks.items()
    }
    merged = dict.fromkeys(protection.merged, "the next merge of this branch starts here")
    numbers, keep = simulator.numbers, rule.retain_versions
    first_kept = len(numbers) if keep is None else len(numbers) - keep
    newest = "the newest version" if keep in (None, 1) else f"one of the newest {keep:,}"
    young = "" if rule.older_than is None else f"younger than {_days(rule.older_than)}"
    reasons = []
    for position, (number, goes) in enumerate(zip(numbers, removed, strict=True)):
        if goes:
            reasons.append("")
        elif position >= first_kept or position == len(numbers) - 1:
            reasons.append(newest)
        else:
            reason = tags.get(number) or forks.get(number) or merged.get(number)
            reasons.append(reason or young or "kept")
    return reasons


def _days(span: timedelta) -> str:
    days = span / timedelta(days=1)
    return f"{days:g} day{'' if days == 1 else 's'}"


def _runs(numbers: Sequence[int], reasons: Sequence[str]) -> list[tuple[int, int, str]]:
    runs: list[tuple[int, int, str]] = []
    for number, reason in zip(numbers, reasons, strict=True):
        if runs and runs[-1][2] == reason:
            runs[-1] = (runs[-1][0], number, reason)
        else:
            runs.append((number, number, reason))
    return runs


def retention_files(
    simulator: RetentionSimulator, rule: RetentionRule, version: int
) -> dict[str, Any]:
    """Return the largest files of a version, with who keeps each of them."""
    simulation = simulator.simulate(rule)
    removed = set(simulation.numbers)
    reason = ""
    if version in simulator.numbers:
        reason = _reasons(simulator, rule, simulation.removed.tolist())[
            simulator.numbers.index(version)
        ]
    files = simulator.files_of(version, removed, MAX_FILES)
    return {
        "version": version,
        "goes": version in removed,
        "reason": reason,
        "files": [
            {
                "name": text.name(file.path.rpartition("/")[2]),
                "size": text.size(file.size_bytes),
                "goes": file.goes,
                "kept": _keepers(file),
            }
            for file in files
        ],
    }


def _keepers(file: FileFate) -> str:
    if file.goes:
        return "no version that stays needs it"
    names = ", ".join(text.ref_label(*place) for place in file.keepers)
    more = file.num_keepers - len(file.keepers)
    return f"kept by {names}" + (f" and {text.plural(more, 'more version')}" if more > 0 else "")
