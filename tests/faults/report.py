"""Writes the page on reliability from the stored results of long runs.

    python -m tests.faults report

pylance's column is what pylance 14.0.2 did in the same case; where a run did not measure it again,
the figure was measured before, on the same kind of machine, and is marked so.
"""

from __future__ import annotations

from typing import Any

from tests.faults.results import kept
from tests.house.source import ROOT

FILE = ROOT / "notebooks/reference/reliability.md"
HEAD = """\
# Reliability

What was done to datasets on purpose, how often, and what came of it. `python -m tests.faults
report` writes this page from the results in `tests/faults/results`, which the runs store; a test
checks that it says what they say. Every run prints its seeds; the commands are those of today.

## Summary

"""
TABLE = """
## Runs

| test | size | seeds | result | time | date | pylance 14.0.2 in the same case | command |
|---|---|---|---|---|---|---|---|
"""
# Lines of the summary: what holds, and the results that show it.
SUMMARY = {
    "A writer that is killed leaves the state before or the state after": ("kills",),
    "Power that fails loses nothing that was acknowledged": ("losses",),
    "pylance's commits and clean-ups beside a writer cost nothing": ("beside", "cleaned"),
    "The next opener finishes a commit through a manifest store": (
        "stores_sqlite", "stores_redis", "stores_postgresql", "stores_dynamodb",
    ),
    "What is reported of a change is true when calls, replies or the disk fail": (
        "fault_cells", "lost_replies", "replies_lost_twice",
    ),
    "Writers that meet and fail equal writers one after the other": ("histories",),
    "Processes of ours and of pylance lose and double nothing": ("races",),
    "Jobs and streams on Spark commit once, whoever is killed": (
        "spark_failures", "spark_kills", "stream_replays",
    ),
    "Versions of long random histories by both libraries stay what they were": ("sequences",),
    "Damaged files end in valid data or an error of ours, soon": (
        "hostile_datasets", "hostile_files", "hostile_indices",
    ),
}  # fmt: skip
SIZES = ("rounds", "replays", "cases", "runs", "commits")
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
        "{rounds:,} states, {num_verbs} verbs",
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
    "cleaned": (
        "pylance cleans up, fiercely, between any two steps of a change",
        "{rounds:,} clean-ups, {num_verbs} verbs",
        "takes part, and reads every result",
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
            "Jobs on Spark whose tasks raise, and whose replies to commits are lost (before: also "
            "workers, executors and drivers that are killed)"
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
        "{cases:,} cells",
        "not run: it takes no such store",
    ),
    "lost_replies": (
        "Every call to the disk reports each of six errors, before or after it did its work",
        "{rounds:,} cells",
        "measured before: 33 of 33 cells readable",
    ),
    "replies_lost_twice": (
        "As the row above, and the next call fails too",
        "{rounds:,} cells",
        "not run",
    ),
    "histories": (
        "Simulated histories of 3 to 5 writers with crashes, lost replies, late arrivals",
        "{cases:,} histories, {faults:,} faults",
        "not run: it has no such simulation",
    ),
    "races": (
        "4 processes of ours and 4 of pylance's commit to one dataset",
        "{commits:,} commits, {polls:,} reads meanwhile",
        "takes part. Measured before, alone: 150 of 150 commits",
    ),
    "sequences": (
        "Long random histories by ours and pylance: every step is compared, every version stays",
        "{runs:,} sequences, {steps:,} steps",
        "takes part",
    ),
    "differential": (
        "Random schemas, histories and reads by both libraries, compared",
        "{cases:,} cases, {checks:,} operations and reads",
        "is the oracle",
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
    "hostile_indices": (
        "Damaged index files of every kind: the sound answer, a warning and a scan, or an error",
        "{cases:,} cases",
        "`--pylance` lets it search the same files, and counts what comes of it",
    ),
    "hostile_files": (
        "Damaged data files of every version: read to valid data or an error of ours",
        "{cases:,} cases",
        "measured before: a process that aborts, a hang; FIFOs wait for ever",
    ),
}


def text() -> str:
    """Return what the page should hold."""
    results = kept()
    missing = [title for name, (title, _, _) in ROWS.items() if name not in results]
    parts = [HEAD, *(_summed(text, names, results) for text, names in SUMMARY.items()), TABLE]
    parts += [_row(*ROWS[name], results[name]) for name in ROWS if name in results]
    if missing:
        parts += ["\nWithout a stored result so far: ", "; ".join(missing), ".\n"]
    for name in ("kills", "losses"):
        if name in results:
            parts.append(_by_verb(ROWS[name][0], results[name]))
    return "".join(parts)


def _summed(text: str, names: tuple[str, ...], results: dict[str, dict[str, Any]]) -> str:
    stored = [results[name] for name in names if name in results]
    cases = sum(next(result[size] for size in SIZES if size in result) for result in stored)
    failures = sum(len(result.get("failures", ())) for result in stored)
    return f"* {text}: {cases:,} cases, {failures} failures.\n"


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


def main(arguments: list[str]) -> int:
    """Write the page."""
    FILE.write_text(text())
    print(f"{FILE.relative_to(ROOT)} is written")
    return 0
