"""Verbs that look after a dataset: space, health, compaction, clean-up."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from datetime import timedelta

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_lines, answer_of_records, answer_of_table
from lance_nb.magic.desk import Desk, label
from lance_nb.magic.verb import Verb, argument


def space(desk: Desk, said: Namespace) -> Answer:
    """Account for every byte."""
    found = desk.dataset.space()
    kinds = ("current", "old", "orphan", "bookkeeping", "other")
    records = [{"bytes of": kind, "size": getattr(found, f"{kind}_bytes")} for kind in kinds]
    for one in found.refs.to_pylist():
        name = f"{one['kind']} {text.name(one['name'])} alone"
        records.append({"bytes of": name, "size": one["exclusive_bytes"]})
    lines = [
        f"{text.size(found.total_bytes)} in {text.plural(found.num_files, 'file')}",
        *(f"damaged: {text.line(one)}" for one in found.damaged),
    ]
    return answer_of_records(
        f"Space of {text.name(desk.dataset.name)}", records, value=found, lines=lines
    )


def doctor(desk: Desk, said: Namespace) -> Answer:
    """Read everything and say what is wrong, or could be better."""
    found = desk.dataset.verify(values=not said.quick)
    looked = (
        f"{text.plural(found.num_versions, 'version')}, "
        f"{text.plural(found.num_data_files, 'data file')}, "
        f"{text.plural(found.num_values, 'value')} read"
    )
    verdict = "whole" if found.is_whole else text.plural(len(found.problems), "problem")
    lines = [f"{verdict}: {looked}", *_advice(desk)]
    if found.num_orphans:
        lines.append(
            f"{text.plural(found.num_orphans, 'file')} ({text.size(found.orphan_bytes)}) belong to "
            f"no version: {desk.prog} clean"
        )
    records = [
        {"problem": one.kind, "where": one.path, "version": one.version, "what": one.message}
        for one in found.problems
    ]
    answer = answer_of_records(f"Health of {label(desk.dataset)}", records, lines=lines)
    data = {
        "is_whole": found.is_whole,
        "problems": records,
        "advice": lines[1:],
        "versions": found.num_versions,
        "data_files": found.num_data_files,
        "values_read": found.num_values,
    }
    return Answer(found, answer.picture, data, exit_code=0 if found.is_whole else 1)


def _advice(desk: Desk) -> list[str]:
    stats = desk.dataset.stats()
    lines = []
    stored = stats.num_rows + stats.num_deleted_rows
    if stats.num_deleted_rows * 10 >= stored > 0:
        share = stats.num_deleted_rows / stored
        lines.append(f"{share:.0%} of the rows are deleted: {desk.prog} compact")
    if stats.num_fragments >= 10 and stored < stats.num_fragments * 100_000:
        lines.append(f"{stats.num_fragments} small fragments: {desk.prog} compact")
    return lines


def compact(desk: Desk, said: Namespace) -> Answer:
    """Join small fragments and drop deleted rows."""
    dataset = desk.latest()
    options = {} if said.target_rows is None else {"target_rows_per_fragment": said.target_rows}
    before = dataset.version
    found = dataset.optimize.compact_files(**options)
    desk.hold(dataset)
    if dataset.version == before:
        return answer_of_lines("Nothing to compact", [label(dataset)], value=found, data={})
    record = asdict(found)
    return answer_of_records(f"Compacted {label(dataset)}", [record], value=found)


def clean(desk: Desk, said: Namespace) -> Answer:
    """Delete old versions, or list what would go."""
    rules = {
        "older_than": None if said.older_than is None else timedelta(days=said.older_than),
        "retain_versions": said.keep,
    }
    if said.really and said.dry_run:
        raise InvalidInputError("--dry-run and --really do not go together")
    if said.really:
        done = desk.dataset.cleanup_old_versions(**rules, error_if_tagged_old_versions=False)
        return answer_of_records(
            f"Cleaned {text.name(desk.dataset.name)}", [asdict(done)], value=done
        )
    found = desk.dataset.cleanup_old_versions(
        **rules, error_if_tagged_old_versions=False, dry_run=True
    )
    stats = found.stats
    going = (
        f"{text.plural(stats.old_versions, 'version')} and "
        f"{text.plural(stats.data_files_removed, 'data file')} would go, "
        f"{text.size(stats.bytes_removed)}; nothing was deleted: add --really"
    )
    lines = [going, *map(text.line, found.warnings)]
    return answer_of_table("What a clean-up would delete", found.to_table(),
                           desk.settings.rows_shown, lines=lines)  # fmt: skip


VERBS = (
    Verb("space", "account for every byte: versions, tags, branches, orphans", space),
    Verb(
        "doctor",
        "read everything and say what is wrong or could be better; exit status 1 for damage",
        doctor,
        (argument("--quick", action="store_true", help="do not decode values"),),
    ),
    Verb(
        "compact",
        "join small fragments and drop deleted rows, as a new version",
        compact,
        (argument("--target-rows", type=int, help="rows per fragment (default 1,048,576)"),),
    ),
    Verb(
        "clean",
        "list the old versions and files that nobody needs; --really deletes them",
        clean,
        (
            argument("--older-than", type=float, metavar="DAYS", help="only versions older than"),
            argument("--keep", type=int, metavar="N", help="keep the newest N versions"),
            argument("--dry-run", action="store_true", help="only list them, the default"),
            argument("--really", action="store_true", help="delete; without it nothing happens"),
        ),
        "clean --keep 10",
    ),
)
