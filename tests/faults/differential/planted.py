"""Plant defects in a copy of the package and measure how soon the generator finds each.

    python -m tests.faults differential-planted [--minutes 5] [--seed 1] [name ...]

A defect counts as found when a case differs with it and does not without it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.house.source import ROOT

IGNORED = shutil.ignore_patterns("__pycache__", "golden")


@dataclass(frozen=True, slots=True)
class Defect:
    """A replacement in one source file."""

    name: str
    path: str
    before: str
    after: str

    def apply(self, root: Path) -> None:
        """Change the file below ``root``."""
        path = root / self.path
        text = path.read_text()
        if text.count(self.before) != 1:
            raise SystemExit(f"{self.name}: {self.path} has {self.before!r} not exactly once")
        path.write_text(text.replace(self.before, self.after))


PLANTED = (
    Defect(
        "JSON of dictionary pages is not converted",
        "lance_nb/file/columns.py",
        "        return jsonb.texts(documents).cast(type_)\n",
        "        if len(documents.unique()) * 8 < len(documents):\n"
        "            return documents.cast(type_)\n"
        "        return jsonb.texts(documents).cast(type_)\n",
    ),
    Defect(
        "a row after a deleted one is taken from one place before",
        "lance_nb/table/deletions.py",
        'np.searchsorted(_live_before(vector), positions, side="right")',
        'np.searchsorted(_live_before(vector), positions, side="left")',
    ),
    Defect(
        "an offset is forgotten after the first window of rows",
        "lance_nb/table/filtered_scan.py",
        "        skip -= start\n",
        "        skip = 0\n",
    ),
    Defect(
        "a null below a null struct hides that the struct is null",
        "lance_nb/encodings/repdef.py",
        "        where = slots & (codes == 0)\n",
        "        where = slots.copy()\n",
    ),
    Defect(
        "an update gives its rows new row ids",
        "lance_nb/writing/rewriting.py",
        "        fragments = list(with_row_ids(fragments, ids))\n",
        "        fragments = list(fragments)\n",
    ),
    Defect(
        "a packed value that spills by one bit loses it",
        "lance_nb/encodings/kernels/bitpack.py",
        "shift.astype(kind), shift + width > word_bits",
        "shift.astype(kind), shift + width > word_bits + 1",
    ),
    Defect(
        "keys of a dictionary are written without looking at nulls",
        "lance_nb/encodings/arrow_arrays.py",
        "        words = words * valid.astype(words.dtype)\n",
        "        words = words * valid[::-1].astype(words.dtype)\n",
    ),
)


def planted_copy(defect: Defect, folder: Path) -> Path:
    """Copy the package and the generator, and plant the defect."""
    for name in ("lance_nb", "tests/faults", "tests/support"):
        shutil.copytree(ROOT / name, folder / name, ignore=IGNORED)
    (folder / "tests/__init__.py").touch()
    defect.apply(folder)
    return folder


def hunt(defect: Defect, seed: int, minutes: float) -> tuple[int, str | None]:
    """Play cases with the defect, one after the other, until one differs that is else alike.

    Returns how many cases were played, and the seed and kind of the difference.
    """
    deadline = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        root = planted_copy(defect, Path(folder))
        for number in itertools.count(seed):
            if time.monotonic() > deadline:
                return number - seed, None
            signature = _signature(root, number)
            if signature is not None and _signature(ROOT, number) != signature:
                return number - seed + 1, f"seed {number}, {signature}"
    raise AssertionError


def _signature(root: Path, seed: int) -> str | None:
    """Play a case with the package below ``root``; return the kind of its difference."""
    command = [sys.executable, "-m", "tests.faults", "differential", "1", str(seed), "--only"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("signature: ")]
    return lines[0] if lines else None if done.returncode == 0 else "no answer"


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of the defects to plant")
    parser.add_argument("--minutes", type=float, default=5.0, help="at most, for each defect")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    missed = 0
    for defect in PLANTED:
        if options.names and not any(name in defect.name for name in options.names):
            continue
        began = time.monotonic()
        cases, difference = hunt(defect, options.seed, options.minutes)
        missed += difference is None
        print(f"{time.monotonic() - began:6.1f} s {cases:5} cases  {defect.name}\n"
              f"                      {difference or 'NOT FOUND'}", flush=True)  # fmt: skip
    return int(missed > 0)
