"""Plant defects in a copy of the package and measure how soon the generator finds each.

    python -m tests.faults differential-planted [--minutes 5] [--seed 1] [name ...]

A defect counts as found when a case differs with it and does not without it.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.faults.differential.run import WORKERS, Worker
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


class Hunt:
    """The search for one planted defect, by several processes."""

    def __init__(self, defect: Defect, seed: int, minutes: float) -> None:
        self._defect = defect
        self._next = seed
        self._deadline = time.monotonic() + 60 * minutes
        self._lock = threading.Lock()
        self.cases = 0
        self.found: str | None = None

    def run(self) -> float:
        """Search until the defect is found; return the seconds that it took."""
        with tempfile.TemporaryDirectory() as folder:
            root = planted_copy(self._defect, Path(folder))
            began = time.monotonic()
            threads = [threading.Thread(target=self._serve, args=[root]) for _ in range(WORKERS)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            return time.monotonic() - began

    def _serve(self, root: Path) -> None:
        planted, clean = Worker(root), None
        while self.found is None and time.monotonic() < self._deadline:
            with self._lock:
                seed = self._next
                self._next += 1
                self.cases += 1
            signature = _signature(planted, seed)
            if signature is None:
                continue
            clean = clean or Worker(ROOT)
            if _signature(clean, seed) != signature:
                self.found = f"seed {seed}, {signature}"
        for worker in (planted, clean):
            if worker is not None:
                worker.stop()


def _signature(worker: Worker, seed: int) -> str | None:
    answer = worker.play(seed, [], shrinks=False)
    return "no answer" if answer is None else answer.get("signature")


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of the defects to plant")
    parser.add_argument("--minutes", type=float, default=5.0, help="at most, for each defect")
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args(arguments)
    chosen = [
        one for one in PLANTED if not said.names or any(name in one.name for name in said.names)
    ]
    missed = 0
    for defect in chosen:
        hunt = Hunt(defect, said.seed, said.minutes)
        took = hunt.run()
        missed += hunt.found is None
        print(f"{took:6.1f} s {hunt.cases:5} cases  {defect.name}\n"
              f"                      {hunt.found or 'NOT FOUND'}", flush=True)  # fmt: skip
    return int(missed > 0)
