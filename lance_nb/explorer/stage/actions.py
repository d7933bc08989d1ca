"""Staged changes that are not part of a transaction: tags, branches, clean-ups, indices.

An ``Action`` says what it would do (``lines``, ``review``, and ``files`` of a clean-up) and does it
when its card is committed. What it does is pinned: a tag is changed only if it still is where it
was when it was staged, a branch is deleted and versions are cleaned up only if the same versions
and files go as were shown. Else ``run`` raises CommitConflictError or RefConflictError, with
nothing changed.

An index is built when its card is committed, of the rows that are newest then, with progress; a
build that is cancelled leaves no file. An INVERTED index is built with positions, which phrases
need.

Limits: ``MAX_FILES`` files of a clean-up are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    InvalidInputError,
)
from lance_nb.explorer import text
from lance_nb.explorer.log.undo import NoUndo, Undo
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.refs import ref_preview
from lance_nb.explorer.refs.ref_change import BranchChange, TagChange, undo_of_branch_deletion
from lance_nb.explorer.refs.ref_list import Place, fork_of, ref_book
from lance_nb.explorer.stage.act_review import ActReview, review_of_branch, review_of_cleanup
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.indices.building import IndexProgress
from lance_nb.value_classes import dataclass

MAX_FILES = 200
ACTION_VERBS = ("tag", "branch", "cleanup", "index")


@dataclass(frozen=True, slots=True)
class Action:
    """An operation with its effect. ``run`` does it and returns what was done, in one line."""

    lines: tuple[str, ...]
    run: Callable[[Progress], str]
    size_bytes: int = 0
    files: pa.Table | None = field(default=None, repr=False)
    review: ActReview | None = None
    undo: Undo | None = None


def action_of(dataset: LanceDataset, form: EditForm, progress: Progress) -> Action:
    """Return the action of a form; nothing is changed yet. Raises LanceError."""
    if form.verb == "cleanup":
        return _cleanup(dataset, form.args, progress)
    if form.verb == "index":
        return _index(dataset, form.args, progress)
    return _tag(dataset, form.args) if form.verb == "tag" else _branch(dataset, form.args, progress)


def _tag(dataset: LanceDataset, args: dict[str, Any]) -> Action:
    name, action = args["name"], args["action"]
    existing = dataset.tags.list().get(name)
    if action == "create" and existing is not None:
        raise InvalidInputError(f"tag {name!r} already exists: move it instead")
    if action != "create" and existing is None:
        raise InvalidInputError(f"tag {name!r} does not exist")
    seen = None if existing is None else (existing.get("branch"), int(existing["version"]))
    was = "" if seen is None else text.ref_label(*seen)
    place: Place | None = None
    if action != "delete":
        target = dataset.checkout_version(args["ref"]) if "ref" in args else dataset
        place = target.branch, target.version
    line = f"tag {text.name(name)} on {was} is deleted"
    if place is not None:
        moved = f" (it was on {was})" if was else ""
        label = text.ref_label(*place)
        line = f"tag {text.name(name)} on {label}{moved}; clean-ups keep this version"
    change, review = TagChange(name, seen, place), None
    if seen is not None:
        lost = ref_preview.of_tag(dataset, ref_book(dataset), name, place)
        review = ActReview(change.title, tuple(lost), is_empty=seen == place)
    return _of_change(dataset, change, line, review=review)


def _of_change(
    dataset: LanceDataset, change: TagChange | BranchChange, line: str, **options: Any
) -> Action:
    """Return the action that makes a change of a tag or branch."""

    def run(progress: Progress) -> str:
        return change.run(dataset, progress).words

    return Action((line,), run, **{"undo": change.inverse, **options})


def _branch(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    name = args["name"]
    if args["action"] == "delete":
        return _branch_deletion(dataset, name, progress)
    if name in dataset.branches.names():
        raise InvalidInputError(f"branch {name!r} already exists")
    target = dataset.checkout_version(args["ref"]) if "ref" in args else dataset
    fork = target.branch, target.version
    line = f"branch {text.name(name)} from {text.ref_label(*fork)}; no data is copied"
    return _of_change(dataset, BranchChange(name, fork, creates=True), line)


def _branch_deletion(dataset: LanceDataset, name: str, progress: Progress) -> Action:
    shown = dataset.branches.explain_delete(name, progress=progress)
    book = ref_book(dataset)
    fork = fork_of(book.branches[name])
    latest = ref_preview.newest_version(dataset, fork[0])
    is_current = dataset.branch == name
    lost = ref_preview.of_deleting_branch(book, shown, latest, stands_here=is_current)

    def delete(report: Progress) -> str:
        if dataset.branches.explain_delete(name, progress=report) != shown:
            raise CommitConflictError(
                f"nothing was deleted: branch {name!r}, or what refers to it, changed after this "
                "preview; refresh the preview"
            )
        return BranchChange(name, fork, creates=False).run(dataset, report).words

    line = f"branch {text.name(name)} is deleted: {text.plural(len(shown.versions), 'version')}"
    review = review_of_branch(shown, lost)
    undo = undo_of_branch_deletion(shown, fork)
    return Action((line,), delete, shown.size_bytes, review=review, undo=undo)


def _cleanup(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    days, keep = args.get("older_than"), args.get("keep")
    if days is not None and days > 36_500:
        raise InvalidInputError("older_than must be at most 36,500 days")
    plan = dataset.cleanup_old_versions(
        None if days is None else timedelta(days=days),
        keep,
        error_if_tagged_old_versions=False,
        dry_run=True,
        progress=progress,
    )
    stats = plan.stats
    going = (
        f"{text.plural(stats.old_versions, 'version')} and "
        f"{text.plural(stats.data_files_removed, 'data file')} to delete, "
        f"{text.size(stats.bytes_removed)}"
    )

    def run(report: Progress) -> str:
        done = plan.run(progress=report)
        return (
            f"{text.plural(done.old_versions, 'version')} and "
            f"{text.plural(done.data_files_removed, 'data file')} deleted, "
            f"{text.size(done.bytes_removed)}"
        )

    lines = (going, *map(text.line, plan.warnings))
    files = plan.to_table().slice(0, MAX_FILES)
    sizes = [text.size(size) for size in files["size_bytes"].to_pylist()]
    shown = files.select(["reason", "path"]).append_column("size", pa.array(sizes, pa.string()))
    review = review_of_cleanup(dataset, plan)
    undo = NoUndo("the files of the removed versions are deleted")
    return Action(lines, run, stats.bytes_removed, files=shown, review=review, undo=undo)


def index_settings(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the index of a card, as the method that builds it takes them."""
    if args["kind"].startswith("IVF"):
        return {"metric": args.get("metric", "l2")}
    return {"with_position": True} if args["kind"] == "INVERTED" else {}


def _index(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    column, kind = args["column"], args["kind"]
    if column not in dataset.schema.names:
        raise ColumnNotFoundError(column, tuple(dataset.schema.names))
    vectors = pa.types.is_fixed_size_list(dataset.schema.field(column).type)
    if vectors != kind.startswith("IVF"):
        reason = "is of vectors: choose an IVF kind" if vectors else "has no vectors"
        raise InvalidInputError(f"column {column!r} {reason}")
    ids = set(_ids_within(dataset, column))
    statistics = dataset.stats.data_stats(progress=progress)
    size = sum(field.bytes_on_disk for field in statistics.fields if field.id in ids)
    rows, shown = dataset.count_rows(), text.name(column)
    name = f"{column}_idx"
    old = any(description.name == name for description in dataset.describe_indices())
    cost = f"reads {text.plural(rows, 'row')}, {text.size(size)} on disk, and writes a version"
    lines = [f"{kind} index {text.name(name)} on {shown}: {cost}"]
    if old:
        lines.append(f"takes the place of the index {text.name(name)} that there is")

    def run(report: Progress) -> str:
        newest = dataset.checkout_version((dataset.branch, None))

        def tell(event: IndexProgress) -> None:
            report(event.completed or 0, event.total or 0)

        build = newest.create_index if vectors else newest.create_scalar_index
        build(column, kind, progress_callback=tell, **index_settings(args))
        label = text.ref_label(newest.branch, newest.version)
        return f"{kind} index {text.name(name)} on {shown} was built, as {label}"

    undo = NoUndo(f"the index {text.name(name)} stays until it is dropped")
    return Action(tuple(lines), run, size, undo=undo)


def _ids_within(dataset: LanceDataset, column: str) -> list[int]:
    """Return the ids of the fields within a column."""
    left = [field for field in dataset.lance_schema.tree.fields if field.name == column]
    ids = []
    while left:
        field = left.pop()
        ids.append(field.id)
        left += field.children
    return ids
