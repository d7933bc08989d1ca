"""Write tests/golden/conflict_grid.txt anew: ``python -m tests.support.print_grid``."""

from __future__ import annotations

from pathlib import Path

from lance_nb.transactions.conflicts import grid

if __name__ == "__main__":
    (Path(__file__).parents[1] / "golden" / "conflict_grid.txt").write_text(grid())
