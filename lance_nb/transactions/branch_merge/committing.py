"""Commit a planned merge: files copied, deletion vectors written, the source pinned, one version.

Order: copies and deletion files (which nobody knows of yet), a tag on the merged version, the
commit. So a crash leaves both branches as they were, with files that cleaning removes and perhaps a
tag.

Copy files into the folder of a branch, in pieces, each under the name it has.

Limits: the version fits the target as it was planned for; a commit of somebody else in between is a
retryable conflict, and the merge has to be planned again. What was copied stays when a later copy
fails; it is in no version, and cleaning removes it.
Source: commit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lance_nb.errors import CommitStateUnknownError, LanceError
from lance_nb.format.checksums import wants_checksums
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.branch_merge.places import FileCopy
from lance_nb.transactions.branch_merge.planning import Planned
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.cloning import copy_file
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.transaction import Transaction

Progress = Callable[[int, int], object]


def copy_files(
    copies: Sequence[FileCopy],
    home: Store,
    progress: Progress | None = None,
    *,
    checksums: bool = False,
) -> int:
    """Copy; return the number of bytes. ``progress`` is told files done and files in all.

    ``checksums``: sums of the copies are recorded. Raises StorageError, CorruptFileError.
    """
    files = [one for copy in copies for one in _files(copy)]
    size_bytes = 0
    sums = CopiedSums() if checksums else None
    for number, (store, source, target) in enumerate(files, 1):
        size_bytes += copy_file(store, source, home, target, sums)
        if progress is not None:
            progress(number, len(files))
    if sums is not None:
        sums.write(home)
    return size_bytes


def _files(copy: FileCopy) -> Iterator[tuple[Store, str, str]]:
    """List the files: one and, of a data file, the folder of blobs beside it; or a whole folder."""
    folder, target = copy.source_path, copy.path
    if not copy.is_folder:
        yield copy.store, copy.source_path, copy.path
        folder, target = folder.removesuffix(".lance"), target.removesuffix(".lance")
    for one in copy.store.list_recursive(folder):
        yield copy.store, f"{folder}/{one.name}", f"{target}/{one.name}"


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
