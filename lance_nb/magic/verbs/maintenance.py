"""Verbs that look after a dataset: space, health, compaction, clean-up."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from lance_nb.code_lines import MAGIC, PYTHON_ONLY, Python, magic
from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_at
from lance_nb.dataset.health import plan_repair, undo_repair, verify
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_lines, answer_of_records, answer_of_table
from lance_nb.magic.desk import Desk, label
from lance_nb.magic.verb import URI, Verb, argument
from lance_nb.shown_text import visible, visible_lines
from lance_nb.table.verification_report import Verification
from lance_nb.table.verification_sample import Sample
from lance_nb.transactions.repair_plan import DEFAULT_AGE, RepairStep


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
    """Read everything and say what is wrong, or could be better; with --repair, mend it."""
    if said.undo is not None:
        return _undo(desk, said)
    if said.repair:
        return _repair(desk, said)
    if said.yes or said.nobody_writes:
        raise InvalidInputError("--yes and --nobody-writes go with --repair")
    if said.quick and said.sample is not None:
        raise InvalidInputError("--quick reads no content of files: there is nothing to --sample")
    if said.seed is not None and said.sample is None:
        raise InvalidInputError("--seed goes with --sample")
    share = None if said.sample is None else _share(said.sample)
    reading = {"values": not said.quick, "sample": share, "seed": said.seed}
    dataset, found = _verified(desk, said.uri, reading)
    looked = (
        f"{text.plural(found.num_versions, 'version')}, "
        f"{text.plural(found.num_fragments, 'fragment')}, "
        f"{text.plural(found.num_data_files, 'data file')}, "
        f"{text.plural(found.num_values, 'value')} read; checksums: {found.checksums}"
    )
    part = [] if found.sample is None else [f"content read: {found.sample}"]
    advice = _advice(desk, dataset)
    if found.num_orphans:
        advice.append(
            f"{text.plural(found.num_orphans, 'file')} ({text.size(found.orphan_bytes)}) belong to "
            f"no version: {desk.prog} clean"
        )
    table = found.to_table().to_pylist()
    records = [
        {
            "severity": one["severity"],
            "code": one["code"],
            "where": _where(one),
            "what": one["message"],
            "to do": one["remedy"],
        }
        for one in table
    ]
    name = label(dataset) if dataset is not None else text.name(found.uri)
    lines = [f"{found.verdict}: {looked}", *part, *_opening(found), *advice]
    answer = answer_of_records(f"Health of {name}", records, lines=lines)
    data = {
        "ok": found.ok,
        "opened_version": found.opened_version,
        "findings": table,
        "advice": advice,
        "versions": found.num_versions,
        "data_files": found.num_data_files,
        "values_read": found.num_values,
        "files_checked": found.num_files_checked,
        "files_without_checksum": found.num_files_without_checksum,
        "sample": None if found.sample is None else _sample(found.sample),
    }
    return Answer(found, answer.picture, data, exit_code=0 if found.ok else 1)


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "seed": sample.seed, "share": sample.share,
        "files": sample.num_files, "files_in_all": sample.num_files_in_all,
        "bytes": sample.size_bytes, "bytes_in_all": sample.size_bytes_in_all,
    }  # fmt: skip


def _share(word: str) -> float:
    """Read ``10%`` or ``0.1``. Raises InvalidInputError for what is no share."""
    try:
        share = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidInputError(
            f"--sample is a share of the bytes, 10% or 0.1, not {text.name(word)!r}"
        )
    return share


def _verified(
    desk: Desk, uri: str | None, reading: Mapping[str, Any]
) -> tuple[LanceDataset | None, Verification]:
    """Verify the dataset in hand or another; it need not be one that can be opened."""
    known = desk.dataset if uri is None else desk.namespace.get(uri)
    if isinstance(known, LanceDataset):
        return known, known.verify(**reading)
    found = verify(str(uri), **reading)
    if found.opened_version is None:
        return None, found
    try:
        return open_at(str(uri), found.opened_version), found
    except LanceError:  # which the verification has told
        return None, found


def _repair(desk: Desk, said: Namespace) -> Answer:
    """Show what can be mended; do it when somebody says so."""
    uri = _uri_of(desk, said.uri)
    plan = plan_repair(uri, older_than=timedelta(0) if said.nobody_writes else DEFAULT_AGE)
    name = f"Repair of {text.name(plan.uri)}"
    records = [_step(one) for one in plan.steps]
    if not plan.steps:
        left = plan.verification.verdict
        line = f"nothing that a repair could do ({left})"
        return answer_of_lines(name, [line], value=plan, data={"steps": []})
    if said.yes:
        chosen = plan.ready
    elif desk.ask is not None:
        ask = desk.ask
        chosen = tuple(one for one in plan.ready if ask(f"{visible_lines(str(one))}\nDo it? [y/N]"))
    else:
        options = {"--repair": True, "--yes": True, "--nobody-writes": said.nobody_writes}
        lines = [
            f"{text.plural(len(plan.ready), 'step')} can be done now; nothing was changed",
            f"do it: {_doctor_line(desk, uri, options)}",
            f"or: {Python('lance_nb.plan_repair').call(uri).attribute('run').call().line()}",
        ]
        found = answer_of_records(name, records, value=plan, lines=lines)
        return Answer(plan, found.picture, {"steps": records}, exit_code=1)
    done = plan.run(chosen)
    after = verify(uri, values=False)
    lines = [*map(text.line, str(done).splitlines()), f"now: {after.verdict}"]
    if done.id:
        line = _doctor_line(desk, uri, {"--undo": done.id})
        lines.append(f"move back what was put aside: {line}")
    found = answer_of_records(name, records, lines=lines)
    data = {
        "steps": records, "done": [one.what for one in done.done], "id": done.id,
        "failed": [reason for _, reason in done.failed], "ok": after.ok,
    }  # fmt: skip
    return Answer(done, found.picture, data, exit_code=0 if after.ok else 1)


def _doctor_line(desk: Desk, uri: str, options: Mapping[str, object]) -> str:
    """Write the line that goes on, where this desk stands."""
    line = magic("doctor", uri, options=options)
    if desk.prog == MAGIC or not line.startswith(MAGIC):  # or it cannot be written
        return line
    given = [name if one is True else f"{name} {one}" for name, one in options.items() if one]
    line = " ".join([desk.prog, "doctor", shlex.quote(uri), *given])
    return line if visible(line) == line else PYTHON_ONLY


def _step(one: RepairStep) -> dict[str, Any]:
    return {
        "step": one.kind, "what": one.what, "why": one.why, "files": ", ".join(one.files),
        "held back": one.held_back,
    }  # fmt: skip


def _undo(desk: Desk, said: Namespace) -> Answer:
    """Move back what a repair has put aside."""
    back = undo_repair(_uri_of(desk, said.uri), said.undo or None)
    lines = [f"{text.plural(len(back), 'file')} moved back", *map(text.line, back)]
    return answer_of_lines("Undone", lines, value=back)


def _uri_of(desk: Desk, uri: str | None) -> str:
    known = desk.dataset if uri is None else desk.namespace.get(uri)
    return known.uri if isinstance(known, LanceDataset) else str(uri)


def _where(row: dict[str, Any]) -> str:
    version = None if row["version"] is None else f"{row['branch'] or 'main'}:{row['version']}"
    fragment = None if row["fragment"] is None else f"fragment {row['fragment']}"
    return ", ".join(one for one in (row["path"], version, fragment) if one)


def _opening(found: Verification) -> list[str]:
    """Say which version is open, where that is not the newest."""
    newest = [one for one in found.findings if one.code == "newest-unreadable" and not one.branch]
    if not newest or found.opened_version is None:
        return []
    said = (
        f"version {newest[0].version}, the newest, cannot be read: version {found.opened_version} "
        "is the last good one"
    )
    return [said]


def _advice(desk: Desk, dataset: LanceDataset | None) -> list[str]:
    try:
        stats = None if dataset is None else dataset.stats()
    except LanceError:  # which the verification has told
        stats = None
    if stats is None:
        return []
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
        (
            argument(
                "uri", nargs="?", means=URI, help="another dataset, also one that does not open"
            ),
            argument("--quick", action="store_true", help="do not decode values"),
            argument(
                "--sample",
                metavar="SHARE",
                help="read the content of some files only: 10% or 0.1 of all bytes, by chance",
            ),
            argument("--seed", type=int, help="choose the same files as --sample did with it"),
            argument("--repair", action="store_true", help="show what can be mended, and ask"),
            argument("--yes", action="store_true", help="do it without asking"),
            argument(
                "--nobody-writes",
                action="store_true",
                help="do not wait until files are an hour old: no commit is under way",
            ),
            argument(
                "--undo", nargs="?", const="", metavar="ID", help="move back what was put aside"
            ),
        ),
        "doctor photos.lance --quick",
        needs_dataset=False,
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
