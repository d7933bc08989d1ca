"""Account for the bytes of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from lance_nb.dataset.session import Session
from lance_nb.table.file_references import References
from lance_nb.table.space_usage import Space, space_of
from lance_nb.table.survey import Survey, take_survey

Progress = Callable[[int, int], object]


def space(session: Session, progress: Progress | None = None) -> Space:
    """Survey a dataset, read the manifests of all its versions and add up."""
    survey = take_survey(session.root, tolerant=True)
    return space_of(survey, read_all(survey, progress), datetime.now(UTC))


def read_all(survey: Survey, progress: Progress | None = None) -> References:
    """Read the manifests of every version of every branch; damaged ones are noted."""
    total = sum(len(line.names) + len(line.detached) for line in survey.lines.values())
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    references = References(tolerant=True)
    for folder, line in survey.lines.items():
        references.read(survey.store(folder), folder, (*line.names, *line.detached), tick)
    return references
