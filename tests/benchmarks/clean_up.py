"""Time clean-ups beside pylance, on many versions.

Two histories: appends, whose manifests grow, and overwrites, whose manifests are small and whose
data files are many. Files are made a month old for the rows that say so: then only versions that
stay have to be read. There is no pylance verb beside ``space()``; its row shows the dry run again.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_nb
from tests.benchmarks.timing import Comparison, compare, table

OPTIONS = {"--versions": {"type": int, "default": 10_000}}
NOW = timedelta(0)
MONTH_S = 30 * 86400
RUNS = 3


def history(uri: Path, versions: int, mode: str) -> Path:
    """Write versions of one row each."""
    found = lance.write_dataset(pa.table({"id": [0]}), str(uri))
    for number in range(1, versions):
        found = lance.write_dataset(pa.table({"id": [number]}), found, mode=mode)
    return uri


def aged(uri: Path) -> Path:
    """Make every file a month old."""
    moment = time.time() - MONTH_S
    for path in uri.rglob("*"):
        os.utime(path, (moment, moment))
    return uri


def dry_runs(name: str, uri: Path) -> Iterator[Comparison]:
    """Compare what deletes nothing."""
    ours, theirs = lance_nb.dataset(str(uri)), lance.dataset(str(uri))
    for rule, options in (
        ("all but one", {"older_than": NOW}),
        ("keep 10", {"retain_versions": 10}),
    ):
        yield compare(
            f"dry run, {name}, {rule}",
            lambda options=options: ours.cleanup_old_versions(**options, dry_run=True),
            lambda options=options: theirs.explain_cleanup_old_versions(
                **options, include_files=True, max_files=10**7
            ),
            runs=RUNS,
        )
    yield compare(
        f"space(), {name}", ours.space, lambda: theirs.explain_cleanup_old_versions(NOW), runs=RUNS
    )


def cleanups(name: str, uri: Path, home: Path) -> Comparison:
    """Compare the deletion of all versions but ten."""
    numbers = itertools.count()
    for number in range(2 * (RUNS + 1)):
        shutil.copytree(uri, home / f"copy{number}", copy_function=os.link)

    def next_copy(module: Any) -> Callable[[], object]:
        return lambda: module.dataset(str(home / f"copy{next(numbers)}")).cleanup_old_versions(
            retain_versions=10
        )

    found = compare(f"clean-up, {name}, keep 10", next_copy(lance_nb), next_copy(lance), runs=RUNS)
    for path in home.glob("copy*"):
        shutil.rmtree(path)
    return found


def run(options: Namespace) -> None:
    """Build the histories, time, print the table."""
    rows: list[Comparison] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for mode, count in (("append", options.versions // 10), ("overwrite", options.versions)):
            uri = history(home / mode, count, mode)
            name = f"{count:,} versions by {mode}"
            rows += dry_runs(name, uri)
            rows.append(cleanups(name, uri, home))
            rows.append(cleanups(f"{name}, a month old", aged(uri), home))
    print(table(rows))
