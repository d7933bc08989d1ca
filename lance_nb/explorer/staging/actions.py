"""What is staged and makes no transaction: tags, branches, clean-up.

An action says first what it would do (``lines``, and ``files`` for a clean-up), and does it when
its card is committed. A tag is changed only where it was seen when it was staged.

Limits: ``MAX_FILES`` files of a clean-up are listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.staging.wishes import Wish

MAX_FILES = 200
NAMES = ("tag", "branch", "cleanup")


@dataclass(frozen=True, slots=True)
class Action:
    """What would be done. ``run`` does it and says what was done, in one line."""

    lines: tuple[str, ...]
    run: Callable[[Progress], str]
    size_bytes: int = 0
    files: pa.Table | None = field(default=None, repr=False)


def action_of(dataset: LanceDataset, wish: Wish, progress: Progress) -> Action:
    """Look at what a wish would do; nothing is changed. Raises LanceError."""
    if wish.verb == "cleanup":
        return _cleanup(dataset, wish.args, progress)
    return _tag(dataset, wish.args) if wish.verb == "tag" else _branch(dataset, wish.args, progress)


def _tag(dataset: LanceDataset, args: dict[str, Any]) -> Action:
    name, action = args["name"], args["action"]
    known = dataset.tags.list().get(name)
    if action == "create" and known is not None:
        raise InvalidInputError(f"tag {name!r} is there already: move it")
    if action != "create" and known is None:
        raise InvalidInputError(f"there is no tag {name!r}")
    seen = None if known is None else (known.get("branch"), int(known["version"]))
    was = "" if seen is None else text.ref_label(*seen)
    if action == "delete":

        def delete(_: Progress) -> str:
            dataset.tags.delete(name, expected=seen)
            return f"tag {text.name(name)} is gone"

        kept = f"{was} stays, and the next clean-up may take it"
        return Action((f"tag {text.name(name)} on {was} goes", kept), delete)
    target = refs.resolve(dataset, args["ref"]) if "ref" in args else dataset
    place, label = (target.branch, target.version), text.ref_label(target.branch, target.version)

    def write(_: Progress) -> str:
        if seen is None:
            dataset.tags.create(name, place)
        else:
            dataset.tags.update(name, place, expected=seen)
        return f"tag {text.name(name)} is on {label}"

    moved = f" (it was on {was})" if was else ""
    return Action((f"tag {text.name(name)} on {label}{moved}; no clean-up takes it then",), write)


def _branch(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    name = args["name"]
    if args["action"] == "delete":
        going = dataset.branches.explain_delete(name, progress=progress)
        lines = tuple(text.line(one) for one in str(going).splitlines())

        def delete(told: Progress) -> str:
            dataset.branches.delete(name, progress=told)
            return f"branch {text.name(name)} is gone"

        return Action(lines, delete, going.size_bytes)
    if name in dataset.branches.names():
        raise InvalidInputError(f"there is a branch {name!r} already")
    target = refs.resolve(dataset, args["ref"]) if "ref" in args else dataset
    label = text.ref_label(target.branch, target.version)

    def create(_: Progress) -> str:
        made = dataset.create_branch(name, (target.branch, target.version))
        return (
            f"branch {text.name(name)} starts at {label}, as {text.ref_label(name, made.version)}"
        )

    return Action((f"branch {text.name(name)} from {label}; no data is copied",), create)


def _cleanup(dataset: LanceDataset, args: dict[str, Any], progress: Progress) -> Action:
    days, keep = args.get("older_than"), args.get("keep")
    if days is not None and days > 36_500:
        raise InvalidInputError("older than a hundred years is nothing")
    rules: dict[str, Any] = {
        "older_than": None if days is None else timedelta(days=days),
        "retain_versions": keep,
        "error_if_tagged_old_versions": False,
    }
    found = dataset.cleanup_old_versions(**rules, dry_run=True, progress=progress)
    stats = found.stats
    going = (
        f"{text.plural(stats.old_versions, 'version')} and "
        f"{text.plural(stats.data_files_removed, 'data file')} go, {text.size(stats.bytes_removed)}"
    )

    def run(told: Progress) -> str:
        done = dataset.cleanup_old_versions(**rules, progress=told)
        return (
            f"{text.plural(done.old_versions, 'version')} and "
            f"{text.plural(done.data_files_removed, 'data file')} are gone, "
            f"{text.size(done.bytes_removed)}"
        )

    lines = (going, *map(text.line, found.warnings))
    files = found.to_table().slice(0, MAX_FILES)
    sizes = [text.size(one) for one in files["size_bytes"].to_pylist()]
    shown = files.select(["reason", "path"]).append_column("size", pa.array(sizes, pa.string()))
    return Action(lines, run, stats.bytes_removed, shown)
