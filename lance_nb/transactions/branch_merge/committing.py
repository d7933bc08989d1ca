"""Commit a planned merge: files copied, deletion vectors written, the source pinned, one version.

Order: copies and deletion files (which nobody knows of yet), a tag on the merged version, the
commit. So a crash leaves both branches as they were, with files that cleaning removes and perhaps a
tag.

Limits: the version fits the target as it was planned for; a commit of somebody else in between is a
retryable conflict, and the merge has to be planned again.
Source: commit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lance_nb.errors import CommitStateUnknownError, LanceError
from lance_nb.format.checksums import wants_checksums
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.branch_merge.copying import copy_files
from lance_nb.transactions.branch_merge.planning import Planned
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.tag_writer import TagWriter
from lance_nb.transactions.transaction import Transaction

Progress = Callable[[int, int], object]
DEFAULTS = CommitOptions()


@dataclass(frozen=True, slots=True)
class Pin:
    """A tag that keeps the files of the merged version."""

    name: str
    is_new: bool


def commit_merge(
    place: CommitPlace,
    planned: Planned,
    tags: TagWriter | None,
    options: CommitOptions = DEFAULTS,
    *,
    properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Committed | None:
    """Commit; None if there is nothing to do. ``tags`` pins the source, None leaves that out.

    Raises as ``commit`` does, and RefConflictError.
    """
    outcome, target = planned.outcome, planned.ends.target
    if outcome is None:
        return None
    config = target.snapshot.manifest.config
    copy_files(outcome.copies, place.home, progress, checksums=wants_checksums(config))
    outcome.pending.write(place.home)
    pin = None if tags is None or not outcome.refers_to_source else pin_source(tags, planned)
    record = replace(planned.record, pin=None if pin is None else pin.name)
    options = replace(options, apply=outcome.apply, is_exact=True)
    transaction = Transaction(
        target.version,
        outcome.operation(),
        options.environment.new_uuid(),
        transaction_properties={**(properties or {}), **record.properties()},
    )
    try:
        return commit(place, transaction, options)
    except CommitStateUnknownError:
        raise  # it may have landed, and needs the files then
    except LanceError:
        if tags is not None and pin is not None and pin.is_new:
            tags.delete(pin.name)
        raise


def pin_source(tags: TagWriter, planned: Planned) -> Pin:
    """Tag the version of the source whose files the target is going to read."""
    source = planned.ends.source
    wanted = Target(source.branch, source.version)
    plain = f"merged-{(source.branch or refs.MAIN).replace('/', '-')}-{source.version}"
    known = refs.list_tags(tags.root)
    name = plain
    for number in range(1, len(known) + 2):
        tag = known.get(name)
        if tag is None:
            break
        if (tag.branch, tag.version) == (wanted.branch, wanted.version):
            return Pin(name, is_new=False)
        name = f"{plain}-{number}"
    tags.create(name, wanted)
    return Pin(name, is_new=True)
