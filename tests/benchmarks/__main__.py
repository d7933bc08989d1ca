"""Measure lance_nb, most of it beside pylance: ``python -m tests.benchmarks NAME [options]``.

``python -m tests.benchmarks NAME --help`` says what a benchmark measures, and its options. Data is
written once, below ``tests/benchmarks/data`` (ignored by git), unless a benchmark says otherwise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

# Each module has ``OPTIONS``, arguments of ``add_argument`` by flag, and ``run(options)``, which
# returns an exit status or nothing. It is imported when it is run: some must not load both engines.
BENCHMARKS = {
    "tables": "tables.command",
    "read": "read",
    "write": "write",
    "object-store": "object_store",
    "index": "index_search",
    "checksums": "checksums",
    "clean-up": "clean_up",
    "diff": "diff",
    "kernels": "decode_kernels",
    "spark": "spark",
    "spark-scale": "spark_scale",
    "ui": "ui.explorer_speed",
    "ui-changes": "ui.changes_speed",
    "ui-scale": "ui.scale",
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that is named first; return its exit status."""
    names = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names.add_argument("name", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    name = names.parse_args(arguments[:1]).name
    benchmark = import_module(f"tests.benchmarks.{BENCHMARKS[name]}")
    parser = argparse.ArgumentParser(
        prog=f"{names.prog} {name}",
        description=benchmark.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for flag, settings in benchmark.OPTIONS.items():
        parser.add_argument(flag, **settings)
    return benchmark.run(parser.parse_args(arguments[1:])) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
