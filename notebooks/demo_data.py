"""Write the demo dataset: a catalogue of street photographs with a history worth looking at.

Run ``python notebooks/demo_data.py [PATH] [--force]``; ``make lab`` and ``make demo`` do, and
``lance-nb demo`` is the same for who has no checkout. The rows come from a seed, so everybody sees
the same dataset: see lance_nb.magic.demo.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from lance_nb.errors import LanceError
from lance_nb.magic.demo import ensure

DEFAULT_PATH = Path(__file__).resolve().parent / "data" / "demo.lance"


def main(arguments: list[str] | None = None) -> None:
    """Write the dataset unless it is there."""
    parser = argparse.ArgumentParser(description="Write the demo dataset of lance_nb.")
    parser.add_argument("path", nargs="?", type=Path, default=DEFAULT_PATH, metavar="PATH")
    parser.add_argument("--force", action="store_true", help="replace a dataset that is there")
    options = parser.parse_args(arguments)
    path: Path = options.path.resolve()
    started = time.perf_counter()
    try:
        said = ensure(path, force=options.force, is_ours=path == DEFAULT_PATH)
    except LanceError as error:
        sys.exit(str(error))
    print(f"{said} in {time.perf_counter() - started:.1f} s" if said.startswith("wrote") else said)


if __name__ == "__main__":
    main()
