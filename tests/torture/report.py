"""Writes RELIABILITY.md from the stored results of long runs: make reliability.

pylance's column is what pylance 14.0.2 did in the same case; where a run did not measure it again,
the figure was measured before, on the same kind of machine, and is marked so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.torture.results import kept

FILE = Path(__file__).parents[2] / "RELIABILITY.md"
HEAD = """\
# Reliability

What was done to datasets on purpose, how often, and what came of it. `make reliability` writes
this file from the results in `tests/torture/results`, which the runs store; a test checks that it
says what they say. Every run prints its seeds; the command repeats it.

"""
TABLE = """\
| test | size | seeds | result | time | date | pylance 14.0.2 in the same case | command |
|---|---|---|---|---|---|---|---|
"""
# What a result is called here, what it counts, and what pylance does. Figures for pylance that are
# not in a result were measured before.
ROWS: dict[str, tuple[str, str, str]] = {
    "kills": (
        "Writers killed by SIGKILL at calls that change the disk (--per-verb: a sample of them)",
        "{rounds:,} kills, {num_verbs} verbs",
        (
            "measured before: 33 of 33 cells readable; leftovers `...manifest#1` stay after every "
            "clean-up. Here: reads every state, appends to what is left"
        ),
    ),
    "losses": (
        "Power lost: what was not synced is gone, cut or torn",
        "{states:,} states, {num_verbs} verbs",
        (
            "measured before: syncs nothing; an empty or halved newest manifest makes the dataset "
            "unreadable. Here: reads a sample of our states"
        ),
    ),
    "beside": (
        "pylance commits while a writer of ours is at it, which is then killed",
        "{rounds:,} kills, {num_verbs} verbs",
        "takes part: none of its commits is lost or doubled",
    ),
    **{
        f"stores_{kind}": (
            f"Writers killed while they commit through a manifest store: {title}",
            "{rounds:,} kills, {num_verbs} verbs",
            "reads every state from the folder alone",
        )
        for kind, title in (
            ("sqlite", "SQLite"),
            ("redis", "Redis"),
            ("postgresql", "PostgreSQL"),
            ("dynamodb", "DynamoDB (moto)"),
        )
    },
    "spark_failures": (
        (
            "Jobs on Spark: a task raises, its worker or executor is killed, the reply to the "
            "commit is lost, the driver is killed"
        ),
        "{rounds:,} rounds, {num_verbs} verbs",
        "reads every result; it has no jobs on Spark",
    ),
    "spark_kills": (
        (
            "Jobs on Spark, in cells of a grid of 144 verbs and stages: workers, executors and "
            "drivers are killed, also while they resume a job"
        ),
        "{kills:,} kills in {rounds:,} rounds, {num_cells} of 144 cells, {num_verbs} verbs",
        "reads every result row for row; it has no jobs on Spark",
    ),
    "stream_replays": (
        "A stream on Spark offers its last batch again, after commits and clean-ups of others",
        "{replays:,} replays",
        "commits between, and reads every result",
    ),
    "fault_cells": (
        "Every step of a change fails, in memory: each fault alone, then with a second one",
        "{cells:,} cells",
        "not run: it takes no such store",
    ),
    "lost_replies": (
        "Every call to the disk reports each of six errors, before or after it did its work",
        "{cells:,} cells",
        "measured before: 33 of 33 cells readable",
    ),
    "replies_lost_twice": (
        "As the row above, and the next call fails too",
        "{cells:,} cells",
        "not run",
    ),
    "histories": (
        "Simulated histories of 3 to 5 writers with crashes, lost replies, late arrivals",
        "{runs:,} histories, {faults:,} faults",
        "not run: it has no such simulation",
    ),
    "races": (
        "4 processes of ours and 4 of pylance's commit to one dataset",
        "{commits:,} commits, {polls:,} reads meanwhile",
        "takes part. Measured before, alone: 150 of 150 commits",
    ),
    "sequences": (
        "Random sequences of every verb, ours and pylance's in turns, against a model",
        "{runs:,} sequences, {steps:,} steps",
        "takes part",
    ),
    "hostile_datasets": (
        (
            "Damaged datasets: every call ends in valid data or an error of ours, within 10 s and "
            "2 GB; no text becomes markup"
        ),
        "{cases:,} cases, {calls:,} calls of {num_verbs} verbs",
        (
            "measured before: 18 panics in 1,200 flipped manifests, 2 dead processes, 3 hangs, "
            "8.6 GB for one field"
        ),
    ),
    "hostile_files": (
        "Damaged data files of every version: read to valid data or an error of ours",
        "{cases:,} cases",
        "measured before: a process that aborts, a hang; FIFOs wait for ever",
    ),
}


def text() -> str:
    """Return what the file should hold."""
    results = kept()
    rows = [_row(*ROWS[name], results[name]) for name in ROWS if name in results]
    missing = [title for name, (title, _, _) in ROWS.items() if name not in results]
    parts = [HEAD, TABLE, *rows]
    if missing:
        parts += ["\nWithout a stored result so far: ", "; ".join(missing), ".\n"]
    for name in ("kills", "losses"):
        if name in results:
            parts.append(_by_verb(ROWS[name][0], results[name]))
    return "".join(parts)


def _row(title: str, size: str, theirs: str, found: dict[str, Any]) -> str:
    counts = {f"num_{name}": len(one) for name, one in found.items() if isinstance(one, dict)}
    size = size.format(**counts, **found)
    failures = found.get("failures", ())
    result = f"{len(failures)} failures" if failures else "0 failures"
    first, last = found.get("seeds", ("", ""))
    seeds = f"{first}" if first == last else f"{first} to {last}"
    cells = (
        title,
        size,
        seeds,
        result,
        f"{found['seconds']:,.0f} s",
        found["date"],
        theirs,
        f"`{found['command']}`",
    )
    return f"| {' | '.join(cells)} |\n"


def _by_verb(title: str, found: dict[str, Any]) -> str:
    ends = ", ".join(f"{name} {count:,}" for name, count in sorted(found["ends"].items()))
    verbs = ", ".join(f"{name} {count:,}" for name, count in sorted(found["verbs"].items()))
    lines = [f"\n## {title}\n", f"States that readers saw: {ends}.\n", f"By verb: {verbs}.\n"]
    lines += [f"* {one}\n" for one in found["failures"]]
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(text())
    sys.stdout.write(f"{FILE.name} is written\n")
