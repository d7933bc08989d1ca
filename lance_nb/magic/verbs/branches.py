"""Verbs for branches and tags: create, restore, merge, cherry-pick, revert."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.refs.ref_list import is_missing, pin_label, tag_place
from lance_nb.magic.context import MagicContext, label, version_ref
from lance_nb.magic.verb import (
    BRANCH,
    COLUMN,
    REF,
    TAG,
    Argument,
    Result,
    argument,
    names_of,
    records_result,
    text_result,
    verb,
)

ON_CONFLICT = ("fail", "ours", "theirs")
_FORCE = argument("--force", action="store_true", help="even if other branches depend on it")
_REF = argument("ref", nargs="?", completes=REF, help="the version (default: the current one)")
_VERSION = argument("ref", completes=REF, help="the version that made the change")


def _common(*first: Argument) -> tuple[Argument, ...]:
    return (
        *first,
        argument("--dry-run", action="store_true", help="show what would happen; commit nothing"),
        argument("--on-conflict", choices=ON_CONFLICT, default="fail",
                 help="how to resolve conflicts"),
        argument("--key", completes=COLUMN, metavar="A,B", help="columns that identify a row"),
        argument("--resolve", action="append", metavar="CHOICE",
                 help="choose cells in conflict: theirs, price=ours, 12.price=base, 12.price:=9.5"),
        argument("-m", "--message", nargs="+", help="the commit message"),
    )  # fmt: skip


@verb(
    argument(
        "action", nargs="?", choices=("list", "create", "delete"), default="list", help="what to do"
    ),
    argument("name", nargs="?", completes=BRANCH, help="the branch"),
    _REF,
    _FORCE,
    example="branch create try-out HEAD~1",
)
def branch(context: MagicContext, args: Namespace) -> Result:
    """List, create or delete branches."""
    dataset = context.dataset
    if args.action == "list":
        branches = dataset.branches.list()
        records = [
            {
                "branch": text.name(name),
                "from": _fork(about),
                "created": datetime.fromtimestamp(about["create_at"], UTC).astimezone(),
            }
            for name, about in branches.items()
        ]
        lines = [
            f"{text.name(name)} is unfinished and has no versions: create it again from "
            f"{_fork(about)} to complete it, or {context.prog} branch delete {text.name(name)}"
            for name, about in branches.items()
            if about.get("is_unfinished")
        ]
        return records_result(f"Branches of {text.name(dataset.name)}", records, lines=lines)
    name = _required_name(context, args, "branch")
    if args.action == "create":
        created = dataset.create_branch(name, version_ref(context.resolve(args.ref)))
        return _moved_result(context.set_dataset(created), f"created branch {text.name(name)}")
    if args.action == "delete":
        if dataset.branch == name:
            context.set_dataset(dataset.checkout_version((None, None)))
        dataset.branches.delete(name, force=args.force)
        return text_result(f"Deleted branch {text.name(name)}", [], value=context.dataset)
    raise InvalidInputError("a branch cannot be moved; delete it and create it again")


@verb(
    argument(
        "action",
        nargs="?",
        choices=("list", "create", "move", "delete"),
        default="list",
        help="what to do",
    ),
    argument("name", nargs="?", completes=TAG, help="the tag"),
    _REF,
    example="tag create reviewed",
)
def tag(context: MagicContext, args: Namespace) -> Result:
    """List, create, move or delete tags."""
    dataset = context.dataset
    if args.action == "list":
        records = [
            {"tag": text.name(name), "version": f"{about['branch'] or 'main'}:{about['version']}",
             "updated": about["updated_at"],
             "kept for": "" if (pin := pin_label(name, about)) is None else f"merge {pin}"}
            for name, about in dataset.tags.list().items()
        ]  # fmt: skip
        return records_result(f"Tags of {text.name(dataset.name)}", records)
    name = _required_name(context, args, "tag")
    if args.action == "delete":
        record = dataset.tags.readable().get(name)
        missing = record is not None and is_missing(dataset, tag_place(record))
        dataset.tags.delete(name)
        consequence = "The version did not exist any more." if missing else "The version is kept."
        return text_result(f"Deleted tag {text.name(name)}", [consequence])
    resolved = context.resolve(args.ref)
    change = dataset.tags.create if args.action == "create" else dataset.tags.update
    change(name, version_ref(resolved))
    return text_result(f"Tag {text.name(name)} is at {label(resolved)}", [], value=resolved)


@verb(
    argument("ref", nargs="?", completes=REF, help="the version to restore"),
    example="restore HEAD~1",
)
def restore(context: MagicContext, args: Namespace) -> Result:
    """Restore an older version as a new version."""
    old = context.resolve(args.ref)
    if old.branch != context.dataset.branch:
        raise InvalidInputError(
            f"{label(old)} is on another branch; go to that branch first, or use cherry-pick"
        )
    back = old.checkout_version(version_ref(old))
    back.restore()
    return _moved_result(
        context.set_dataset(back),
        f"restored version {old.version}; the versions in between are kept",
    )


def _required_name(context: MagicContext, args: Namespace, noun: str) -> str:
    if args.name is None:
        raise InvalidInputError(
            f"{context.prog} {noun} {args.action} needs the name of a {noun}; "
            f"usage: {context.prog} {noun} {args.action} NAME"
        )
    return str(args.name)


def _fork(about: dict[str, object]) -> str:
    return f"{text.name(about['parent_branch'] or 'main')}:{about['parent_version']}"


def _moved_result(dataset: LanceDataset, action_text: str) -> Result:
    return text_result(f"Now at {label(dataset)}", [action_text], value=dataset)


@verb(
    *_common(
        argument("branch", completes=BRANCH, help="the branch to merge"),
        argument(
            "--into",
            completes=BRANCH,
            metavar="BRANCH",
            help="the target (default: the current branch)",
        ),
        argument(
            "--strategy",
            choices=("auto", "fast-forward", "replay"),
            default="auto",
            help="fast-forward fails if the target has new versions",
        ),
        argument("--copy", action="store_true", help="copy the branch's files"),
    ),
    example="merge exp --dry-run",
)
def merge(context: MagicContext, args: Namespace) -> Result:
    """Merge the changes of a branch into the current branch; no data is copied."""
    dataset = context.checkout_latest()
    source: str | tuple[str | None, int] = args.branch
    if args.branch not in {"main", *dataset.branches.names()}:
        source = version_ref(context.resolve(args.branch))  # a tag, or exp:12
    return _run_merge(
        context,
        args,
        lambda options: dataset.branches.merge(source, args.into, **options),
        strategy=args.strategy,
        copy=args.copy,
    )


@verb(*_common(_VERSION), example="cherry-pick exp:12")
def cherry_pick(context: MagicContext, args: Namespace) -> Result:
    """Apply the change of one version to the current branch."""
    version = version_ref(context.resolve(args.ref))
    dataset = context.checkout_latest()
    return _run_merge(context, args, lambda options: dataset.cherry_pick(version, **options))


@verb(*_common(_VERSION), example="revert HEAD~1")
def revert(context: MagicContext, args: Namespace) -> Result:
    """Undo the change of one version, as a new version."""
    version = version_ref(context.resolve(args.ref))
    dataset = context.checkout_latest()
    return _run_merge(context, args, lambda options: dataset.revert(version, **options))


def _run_merge(
    context: MagicContext, args: Namespace, act: Callable[[Mapping[str, Any]], Any], **more: Any
) -> Result:
    options = {
        "on_conflict": args.on_conflict,
        "key": names_of(args.key),
        "resolve": args.resolve,
        "dry_run": args.dry_run,
        "message": " ".join(args.message) if args.message else None,
        **more,
    }
    plan = act(options)
    dataset = context.checkout_latest()
    heading = "Dry run" if args.dry_run else f"Now at {label(dataset)}"
    data = {
        "strategy": plan.strategy,
        "version": plan.version,
        "rows_before": plan.num_rows_before,
        "rows_after": plan.num_rows_after,
        "conflicts": [str(conflict) for conflict in plan.conflicts],
    }
    lines = [text.line(line) for line in str(plan).splitlines()]
    return text_result(heading, lines, value=plan, data=data, exit_code=1 if plan.unresolved else 0)


VERBS = (branch, tag, restore, merge, cherry_pick, revert)
