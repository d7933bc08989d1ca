"""Datasets that releases of 2023 to 2026 wrote, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"


def datasets() -> Iterator[tuple[str, Path]]:
    for path in sorted(GOLDEN.glob("pylance_*/*.lance")):
        if path.parent.name != "pylance_14_0_2":
            yield f"{path.parent.name}/{path.stem}", path


PATHS = dict(datasets())
