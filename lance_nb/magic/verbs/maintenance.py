"""Verbs for maintenance: space, verification and repair, compaction, cleanup."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lance_nb.code_lines import MAGIC, PYTHON_ONLY, Python, magic
from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_at
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import text
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import (
    URI,
    Result,
    argument,
    records_result,
    table_result,
    text_result,
    verb,
)
from lance_nb.shown_text import visible, visible_lines

if TYPE_CHECKING:
    from lance_nb.table.verification.findings import Sample, Verification
    from lance_nb.writing.repair import RepairStep


@verb()
def space(context: MagicContext, args: Namespace) -> Result:
    """Show the use of storage: versions, tags, branches, orphan files."""
    usage = context.dataset.space()
    kinds = ("current", "old", "orphan", "bookkeeping", "other")
    records = [{"bytes of": kind, "size": getattr(usage, f"{kind}_bytes")} for kind in kinds]
    for ref in usage.refs.to_pylist():
        name = f"{ref['kind']} {text.name(ref['name'])} only"
        records.append({"bytes of": name, "size": ref["exclusive_bytes"]})
    lines = [
        f"{text.size(usage.total_bytes)} in {text.plural(usage.num_files, 'file')}",
        *(f"damaged: {text.line(damage)}" for damage in usage.damaged),
    ]
    return records_result(
        f"Space of {text.name(context.dataset.name)}", records, value=usage, lines=lines
    )


@verb(
    argument(
        "uri",
        nargs="?",
        completes=URI,
        help="another dataset, even one that cannot be opened",
    ),
    argument("--quick", action="store_true", help="do not decode values"),
    argument(
        "--sample",
        metavar="SHARE",
        help="read the content of a random sample of files: 10% or 0.1 of all bytes",
    ),
    argument("--seed", type=int, help="the seed of --sample, to choose the same files"),
    argument("--repair", action="store_true", help="show the repair steps, and ask"),
    argument("--yes", action="store_true", help="run the repair without asking"),
    argument(
        "--nobody-writes",
        action="store_true",
        help="nobody else is writing: also repair files younger than an hour",
    ),
    argument("--undo", nargs="?", const="", metavar="ID", help="move the files of a repair back"),
    example="doctor photos.lance --quick",
    needs_dataset=False,
)
def doctor(context: MagicContext, args: Namespace) -> Result:
    """Verify a dataset and suggest maintenance; exit status 1 for damage."""
    if args.undo is not None:
        return _undo(context, args)
    if args.repair:
        return _repair(context, args)
    if args.yes or args.nobody_writes:
        raise InvalidInputError("--yes and --nobody-writes require --repair")
    if args.quick and args.sample is not None:
        raise InvalidInputError("--quick does not read the content of files; leave out --sample")
    if args.seed is not None and args.sample is None:
        raise InvalidInputError("--seed requires --sample")
    share = None if args.sample is None else _share(args.sample)
    reading = {"values": not args.quick, "sample": share, "seed": args.seed}
    dataset, verification = _verified(context, args.uri, reading)
    looked = (
        f"{text.plural(verification.num_versions, 'version')}, "
        f"{text.plural(verification.num_fragments, 'fragment')}, "
        f"{text.plural(verification.num_data_files, 'data file')}, "
        f"{text.plural(verification.num_values, 'value')} read; checksums: {verification.checksums}"
    )
    part = [] if verification.sample is None else [f"content read: {verification.sample}"]
    advice = _advice(context, dataset)
    if verification.num_orphans:
        advice.append(
            f"{text.plural(verification.num_orphans, 'unreferenced file')} "
            f"({text.size(verification.orphan_bytes)}); run {context.prog} clean"
        )
    table = verification.to_table().to_pylist()
    records = [
        {
            "severity": row["severity"],
            "code": row["code"],
            "where": _where(row),
            "what": row["message"],
            "to do": row["remedy"],
        }
        for row in table
    ]
    name = label(dataset) if dataset is not None else text.name(verification.uri)
    lines = [f"{verification.verdict}: {looked}", *part, *_opening(verification), *advice]
    data = {
        "ok": verification.ok,
        "opened_version": verification.opened_version,
        "findings": table,
        "advice": advice,
        "versions": verification.num_versions,
        "data_files": verification.num_data_files,
        "values_read": verification.num_values,
        "files_checked": verification.num_files_checked,
        "files_without_checksum": verification.num_files_without_checksum,
        "sample": None if verification.sample is None else _sample(verification.sample),
    }
    return records_result(
        f"Health of {name}", records, value=verification, data=data, lines=lines,
        exit_code=0 if verification.ok else 1,
    )  # fmt: skip


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "seed": sample.seed, "share": sample.share,
        "files": sample.num_files, "files_in_all": sample.num_files_in_all,
        "bytes": sample.size_bytes, "bytes_in_all": sample.size_bytes_in_all,
    }  # fmt: skip


def _share(word: str) -> float:
    """Parse a share: ``10%`` or ``0.1``. Raises InvalidInputError."""
    try:
        share = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidInputError(
            f"--sample must be a share of the bytes, such as 10% or 0.1, not {text.name(word)!r}"
        )
    return share


def _verified(
    context: MagicContext, uri: str | None, reading: Mapping[str, Any]
) -> tuple[LanceDataset | None, Verification]:
    """Verify the current dataset or another one, which may be too damaged to open."""
    dataset = context.dataset if uri is None else context.namespace.get(uri)
    if isinstance(dataset, LanceDataset):
        return dataset, dataset.verify(**reading)
    from lance_nb.dataset.health import verify

    verification = verify(str(uri), **reading)
    if verification.opened_version is None:
        return None, verification
    try:
        return open_at(str(uri), verification.opened_version), verification
    except LanceError:  # reported by the verification
        return None, verification


def _repair(context: MagicContext, args: Namespace) -> Result:
    """Show the repair steps; run those that are confirmed."""
    from lance_nb.dataset.health import plan_repair, verify
    from lance_nb.writing.repair import DEFAULT_AGE

    uri = _uri_of(context, args.uri)
    plan = plan_repair(uri, older_than=timedelta(0) if args.nobody_writes else DEFAULT_AGE)
    name = f"Repair of {text.name(plan.uri)}"
    records = [_step(step) for step in plan.steps]
    if not plan.steps:
        left = plan.verification.verdict
        line = f"no repair steps ({left})"
        return text_result(name, [line], value=plan, data={"steps": []})
    if args.yes:
        chosen = plan.ready
    elif context.ask is not None:
        ask = context.ask
        chosen = tuple(
            step for step in plan.ready if ask(f"{visible_lines(str(step))}\nRun this step? [y/N]")
        )
    else:
        options = {"--repair": True, "--yes": True, "--nobody-writes": args.nobody_writes}
        lines = [
            f"{text.plural(len(plan.ready), 'step')} can be run now; nothing was changed",
            f"to run them: {_continue_line(context, uri, options)}",
            f"or: {Python('lance_nb.plan_repair').call(uri).attribute('run').call().line()}",
        ]
        return records_result(
            name, records, value=plan, data={"steps": records}, lines=lines, exit_code=1
        )
    done = plan.run(chosen)
    after = verify(uri, values=False)
    lines = [*map(text.line, str(done).splitlines()), f"now: {after.verdict}"]
    if done.id:
        line = _continue_line(context, uri, {"--undo": done.id})
        lines.append(f"to move the quarantined files back: {line}")
    data = {
        "steps": records, "done": [step.what for step in done.done], "id": done.id,
        "failed": [reason for _, reason in done.failed], "ok": after.ok,
    }  # fmt: skip
    exit_code = 0 if after.ok else 1
    return records_result(name, records, value=done, data=data, lines=lines, exit_code=exit_code)


def _continue_line(context: MagicContext, uri: str, options: Mapping[str, object]) -> str:
    """Return the command that continues a repair, for a notebook or a terminal."""
    line = magic("doctor", uri, options=options)
    if context.prog == MAGIC or not line.startswith(MAGIC):  # or it cannot be quoted
        return line
    option_words = [
        name if option is True else f"{name} {option}" for name, option in options.items() if option
    ]
    line = " ".join([context.prog, "doctor", shlex.quote(uri), *option_words])
    return line if visible(line) == line else PYTHON_ONLY


def _step(step: RepairStep) -> dict[str, Any]:
    return {
        "step": step.kind, "what": step.what, "why": step.why, "files": ", ".join(step.files),
        "held back": step.held_back,
    }  # fmt: skip


def _undo(context: MagicContext, args: Namespace) -> Result:
    """Move the files back that a repair has quarantined."""
    from lance_nb.dataset.health import undo_repair

    back = undo_repair(_uri_of(context, args.uri), args.undo or None)
    lines = [f"{text.plural(len(back), 'file')} moved back", *map(text.line, back)]
    return text_result("Undone", lines, value=back)


def _uri_of(context: MagicContext, uri: str | None) -> str:
    opened = context.dataset if uri is None else context.namespace.get(uri)
    return opened.uri if isinstance(opened, LanceDataset) else str(uri)


def _where(row: dict[str, Any]) -> str:
    version = None if row["version"] is None else f"{row['branch'] or 'main'}:{row['version']}"
    fragment = None if row["fragment"] is None else f"fragment {row['fragment']}"
    return ", ".join(word for word in (row["path"], version, fragment) if word)


def _opening(verification: Verification) -> list[str]:
    """Return a line about the opened version if it is not the newest one."""
    newest = [
        finding
        for finding in verification.findings
        if finding.code == "newest-unreadable" and not finding.branch
    ]
    if not newest or verification.opened_version is None:
        return []
    line = (
        f"version {newest[0].version}, the newest, cannot be read; version "
        f"{verification.opened_version} is the newest valid one"
    )
    return [line]


def _advice(context: MagicContext, dataset: LanceDataset | None) -> list[str]:
    from lance_nb.dataset.advice import advice_on  # knows the kinds of indices

    try:
        advice = [] if dataset is None else advice_on(dataset.opened[1], dataset.stats())
    except LanceError:  # reported by the verification
        advice = []
    return [
        f"{text.line(entry.reason)}; "
        + (f"run {context.prog} {entry.verb}" if entry.verb else entry.remedy)
        for entry in advice
    ]


@verb(argument("--target-rows", type=int, help="rows per fragment (default 1,048,576)"))
def compact(context: MagicContext, args: Namespace) -> Result:
    """Merge small fragments and drop deleted rows, as a new version."""
    dataset = context.checkout_latest()
    options = {} if args.target_rows is None else {"target_rows_per_fragment": args.target_rows}
    before = dataset.version
    metrics = dataset.optimize.compact_files(**options)
    context.set_dataset(dataset)
    if dataset.version == before:
        return text_result("Nothing to compact", [label(dataset)], value=metrics, data={})
    record = asdict(metrics)
    return records_result(f"Compacted {label(dataset)}", [record], value=metrics)


@verb(
    argument("--older-than", type=float, metavar="DAYS", help="only versions older than this"),
    argument("--keep", type=int, metavar="N", help="keep the newest N versions"),
    argument("--dry-run", action="store_true", help="only list them (default)"),
    argument("--really", action="store_true", help="delete them"),
    example="clean --keep 10",
)
def clean(context: MagicContext, args: Namespace) -> Result:
    """List old versions and unreferenced files; --really deletes them."""
    rules = {
        "older_than": None if args.older_than is None else timedelta(days=args.older_than),
        "retain_versions": args.keep,
    }
    if args.really and args.dry_run:
        raise InvalidInputError("--dry-run and --really exclude each other")
    if args.really:
        done = context.dataset.cleanup_old_versions(**rules, error_if_tagged_old_versions=False)
        return records_result(
            f"Cleaned {text.name(context.dataset.name)}", [asdict(done)], value=done
        )
    preview = context.dataset.cleanup_old_versions(
        **rules, error_if_tagged_old_versions=False, dry_run=True
    )
    stats = preview.stats
    going = (
        f"{text.plural(stats.old_versions, 'version')} and "
        f"{text.plural(stats.data_files_removed, 'data file')} would be deleted, "
        f"{text.size(stats.bytes_removed)}; add --really to delete them"
    )
    lines = [going, *map(text.line, preview.warnings)]
    return table_result("Cleanup (dry run)", preview.to_table(),
                           context.settings.rows_shown, lines=lines)  # fmt: skip


VERBS = (space, doctor, compact, clean)
