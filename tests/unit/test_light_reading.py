"""Reading loads nothing that it does not need: pandas alone would cost 0.4 s and 60 MiB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "pylance_14_0_2"
HEAVY = ("pandas", "numba", "sqlglot", "pyarrow.dataset", "IPython")


@pytest.mark.parametrize("name", ["history", "types_2_2", "stable_ids"])
def test_reading_loads_no_heavy_package(name: str) -> None:
    rows = "['_rowid', '_rowaddr', '_rowoffset']"
    code = (
        f"import sys, lance_nb; d = lance_nb.dataset({str(GOLDEN / f'{name}.lance')!r});"
        f"d.head(3), d.to_table(), d.take([2, 0, 2]), d.to_table(columns={rows});"
        "d.version_info(d.version), d.stats(), d.tags.list();"
        f"print([n for n in {HEAVY!r} if n in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
