"""Where benchmarks keep their datasets, and how they write one only once.

No engine is imported here: a process that measures one of them must not load the other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"  # ignored by git, removed by `make clean`


def write_once(path: Path, make: Callable[[str], object]) -> str:
    """Write a dataset or file unless it is there; a marker file says that it is complete."""
    done = path.with_name(f"{path.name}.done")
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)  # what an interrupted run left
        path.parent.mkdir(parents=True, exist_ok=True)
        make(str(path))
        done.touch()
    return str(path)


def process_environment() -> dict[str, str]:
    """Return the environment of a measured process, without settings that change an engine.

    As that of an installed package is, our bytecode is kept from one process to the next.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "PYTHONPYCACHEPREFIX": str(DATA / "bytecode")}
