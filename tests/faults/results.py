"""The results of long runs, kept as JSON: the page on reliability is made of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def keep(name: str, command: str, found: dict[str, Any]) -> None:
    """Store the result of a run, in place of the last one."""
    FOLDER.mkdir(exist_ok=True)
    record = {"command": command, "date": datetime.now(UTC).date().isoformat(), **found}
    (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def add(name: str, command: str, found: dict[str, Any]) -> None:
    """Add the result of a run to the stored one, whose seeds end where those of the run begin.

    Counts and seconds are summed, failures listed one after the other. Raises ValueError for other
    seeds: a case must not be counted twice.
    """
    stored = json.loads((FOLDER / f"{name}.json").read_text())
    first, last = found["seeds"]
    if first != stored["seeds"][1] + 1:
        raise ValueError(f"seeds {first} to {last} do not follow those stored: {stored['seeds']}")
    command = f"{stored.pop('command')}; {command}"
    del stored["date"]
    keep(name, command, _sum(stored, found) | {"seeds": [stored["seeds"][0], last]})


def _sum(one: Any, other: Any) -> Any:
    """Add numbers, join lists, and do so with each entry of two dictionaries."""
    if isinstance(one, dict):
        return {
            key: _sum(one[key], other[key]) if key in one and key in other else (one | other)[key]
            for key in one | other
        }
    return one + other if isinstance(one, (int, float, list)) else other


def kept() -> dict[str, dict[str, Any]]:
    """Return every stored result by its name."""
    return {one.stem: json.loads(one.read_text()) for one in sorted(FOLDER.glob("*.json"))}
