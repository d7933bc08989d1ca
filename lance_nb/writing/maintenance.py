"""The space that a dataset takes, and the checksums of its files.

Source: our own; format/checksums.py, which pylance does not have.
"""

from __future__ import annotations

from datetime import UTC, datetime

from lance_nb.format.checksums import ALGORITHM, CONFIG_KEY, wants_checksums
from lance_nb.session.session import Session
from lance_nb.storage.registry import relative_uri
from lance_nb.table.file_references import References
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.space_usage import Space, space_of
from lance_nb.table.survey import Survey, take_survey
from lance_nb.transactions.checksum_records import AddedChecksums, record_existing
from lance_nb.writing.cloning import files_of
from lance_nb.writing.progress import Progress, ProgressCounter


def space(session: Session, progress: Progress | None = None) -> Space:
    """Survey a dataset, read the manifests of all its versions and add up."""
    survey = take_survey(session.root, tolerant=True)
    return space_of(survey, read_all(survey, progress), datetime.now(UTC))


def read_all(survey: Survey, progress: Progress | None = None) -> References:
    """Read the manifests of every version of every branch; damaged ones are noted."""
    total = sum(len(line.names) + len(line.detached) for line in survey.lines.values())
    counter = ProgressCounter(total, progress)
    references = References(tolerant=True)
    for folder, line in survey.lines.items():
        references.read(
            survey.store(folder), folder, (*line.names, *line.detached), lambda: counter.add(1)
        )
    return references


CHECKSUM_SETTING = {CONFIG_KEY: ALGORITHM}


def checksums_are_wanted(snapshot: Snapshot) -> bool:
    """Tell whether a version asks for checksums. Raises NotSupportedError for an unknown kind."""
    return wants_checksums(snapshot.manifest.config)


def add_checksums(
    session: Session, snapshot: Snapshot, progress: Progress | None
) -> AddedChecksums:
    """Record the sums of the files of a version that have none. Raises StorageError."""
    indices = tuple(read_indices(snapshot))
    files = [
        (named_file.store, named_file.path)
        for named_file in files_of(snapshot.locations, snapshot.manifest, indices)
        if relative_uri(named_file.store.uri, session.root.uri) is not None
    ]

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(files))

    return record_existing(files, report)
