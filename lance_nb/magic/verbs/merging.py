"""Verbs that carry changes between versions: merge, cherry-pick, revert."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_lines
from lance_nb.magic.desk import Desk, label, place_of
from lance_nb.magic.verb import BRANCH, COLUMN, REF, Argument, Verb, argument, names_of

ON_CONFLICT = ("fail", "ours", "theirs")


def merge(desk: Desk, said: Namespace) -> Answer:
    """Bring what a branch did into the branch in hand."""
    dataset = desk.latest()
    source: str | tuple[str | None, int] = said.branch
    if said.branch not in {"main", *dataset.branches.names()}:
        source = place_of(desk.at(said.branch))  # a tag, or exp:12
    return _done(
        desk,
        said,
        lambda options: dataset.branches.merge(source, said.into, **options),
        strategy=said.strategy,
        copy=said.copy,
    )


def cherry_pick(desk: Desk, said: Namespace) -> Answer:
    """Do the change that made one version again, here."""
    version = place_of(desk.at(said.ref))
    dataset = desk.latest()
    return _done(desk, said, lambda options: dataset.cherry_pick(version, **options))


def revert(desk: Desk, said: Namespace) -> Answer:
    """Undo the change that made one version."""
    version = place_of(desk.at(said.ref))
    dataset = desk.latest()
    return _done(desk, said, lambda options: dataset.revert(version, **options))


def _done(
    desk: Desk, said: Namespace, act: Callable[[Mapping[str, Any]], Any], **more: Any
) -> Answer:
    options = {
        "on_conflict": said.on_conflict,
        "key": names_of(said.key),
        "dry_run": said.dry_run,
        "message": " ".join(said.message) if said.message else None,
        **more,
    }
    plan = act(options)
    dataset = desk.latest()
    heading = "What it would do" if said.dry_run else f"Now at {label(dataset)}"
    data = {
        "strategy": plan.strategy,
        "version": plan.version,
        "rows_before": plan.num_rows_before,
        "rows_after": plan.num_rows_after,
        "conflicts": [str(one) for one in plan.conflicts],
    }
    lines = [text.line(one) for one in str(plan).splitlines()]
    return answer_of_lines(
        heading, lines, value=plan, data=data, exit_code=1 if plan.unresolved else 0
    )


def _common(*first: Argument) -> tuple[Argument, ...]:
    return (
        *first,
        argument("--dry-run", action="store_true", help="say what would happen, commit nothing"),
        argument("--on-conflict", choices=ON_CONFLICT, default="fail",
                 help="where both sides changed the same"),
        argument("--key", means=COLUMN, metavar="A,B", help="columns that tell rows apart"),
        argument("-m", "--message", nargs="+", help="what was done and why"),
    )  # fmt: skip


_VERSION = argument("ref", means=REF, help="the version whose change is meant")

VERBS = (
    Verb(
        "merge",
        "bring what a branch did since it forked into the branch in hand; no data is copied",
        merge,
        _common(
            argument("branch", means=BRANCH, help="the branch to merge"),
            argument("--into", means=BRANCH, metavar="BRANCH", help="another branch than this"),
            argument(
                "--strategy",
                choices=("auto", "fast-forward", "replay"),
                default="auto",
                help="fast-forward refuses when this branch has moved",
            ),
            argument("--copy", action="store_true", help="copy the branch's files"),
        ),
        "merge exp --dry-run",
    ),
    Verb(
        "cherry-pick",
        "do the change that made one version again, here",
        cherry_pick,
        _common(_VERSION),
        "cherry-pick exp:12",
    ),
    Verb(
        "revert",
        "undo the change that made one version, as a new version",
        revert,
        _common(_VERSION),
        "revert HEAD~1",
    ),
)
