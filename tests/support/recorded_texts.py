"""Texts of findings and repairs for every planted damage, kept in ``tests/golden``.

``python -m tests.support.recorded_texts`` writes both files anew: look at the difference. What
differs from run to run (names of files, sizes of manifests) and what other libraries say of bytes
that they cannot read is left out.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from unittest import mock

import lance_nb
from tests.support.damages import DAMAGES, Damage, Damaged, Files, build

GOLDEN = Path(__file__).parents[1] / "golden"
FINDINGS, REPAIRS = GOLDEN / "findings.txt", GOLDEN / "repairs.txt"
_HEADING = "# "
_LEFT_OUT = (
    (r"memory://[\w-]+/d\.lance", "URI"),
    (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "UUID"),
    (r"[01]{24}[0-9a-f]{26}", "FILE"),
    (r"(_deletions/\d+-\d+)-\d+", r"\1-N"),
    (r"(the record says|of the manifest, which has) \d+", r"\1 N"),
    (r"at byte \d+: expected the magic bytes 'LANC', found b.*?(?=;)", "at byte N: no magic bytes"),
    (r"(expected (?:a JSON object|an Arrow deletion file), found) [^;]*", r"\1 ..."),
    (r"\b\d[\d,]{2,} bytes", "N bytes"),
)


def damages_of(*, stable: bool) -> list[Damage]:
    """Return the damages that can be planted in a dataset with stable row ids, or without."""
    return [one for one in DAMAGES if one.only in ("", "stable" if stable else "plain")]


def built(uri: str, *, stable: bool) -> tuple[Damaged, Files]:
    """Build the dataset with the same names of files as at any other time; return its files."""
    chance = random.Random(int(stable))

    def name() -> uuid.UUID:
        return uuid.UUID(int=chance.getrandbits(128), version=4)

    with mock.patch.object(uuid, "uuid4", name):
        world = build(uri, stable_row_ids=stable)
    return world, world.take()


def findings_text(report: lance_nb.Verification) -> list[str]:
    """Write each finding in one line."""
    return sorted(
        shown(f"{one.severity} {one.code}: {one.where}: {one.message}") for one in report.findings
    )


def repairs_text(plan: lance_nb.RepairPlan) -> list[str]:
    """Write each step in one line."""
    return [shown("; ".join(map(str.strip, str(one).splitlines()))) for one in plan.steps]


def shown(text: str) -> str:
    """Leave out what differs from run to run."""
    for pattern, replacement in _LEFT_OUT:
        text = re.sub(pattern, replacement, text)
    return text


def heading(damage: Damage, *, stable: bool) -> str:
    """Name a damage in one kind of dataset."""
    return f"{damage.name} ({'stable' if stable else 'plain'} row ids)"


def recorded(path: Path) -> dict[str, list[str]]:
    """Read the texts of a file by their heading."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(_HEADING):
            lines = found.setdefault(line.removeprefix(_HEADING), [])
        else:
            lines.append(line)
    return found


def _texts(*, repairs: bool) -> Iterator[str]:
    for stable in (False, True):
        uri = f"memory://texts-{repairs:d}-{stable:d}/d.lance"
        world, files = built(uri, stable=stable)
        for damage in damages_of(stable=stable):
            world.put(files)
            damage.plant(world)
            if repairs:
                lines = repairs_text(lance_nb.plan_repair(uri, older_than=timedelta(0)))
            else:
                lines = findings_text(lance_nb.verify(uri))
            if lines:
                yield from (f"{_HEADING}{heading(damage, stable=stable)}", *lines)


def main() -> None:
    """Write both files."""
    for path in (FINDINGS, REPAIRS):
        text = "".join(f"{line}\n" for line in _texts(repairs=path is REPAIRS))
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
