"""Print the conflict grid of all operations as one table.

``python -m tests.support.print_grid --write`` also writes tests/golden/conflict_grid.txt anew, with
which ``tests/unit/transactions/test_conflict_grid`` compares the code.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lance_nb.transactions.conflict_grid import grid

GOLDEN = Path(__file__).parents[1] / "golden" / "conflict_grid.txt"

if __name__ == "__main__":
    sys.stdout.write(grid())
    if "--write" in sys.argv[1:]:
        GOLDEN.write_text(grid(), encoding="utf-8")
