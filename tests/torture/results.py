"""The results of long runs, kept as JSON beside the tests: RELIABILITY.md is made of them."""

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


def kept() -> dict[str, dict[str, Any]]:
    """Return every stored result by its name."""
    return {one.stem: json.loads(one.read_text()) for one in sorted(FOLDER.glob("*.json"))}
