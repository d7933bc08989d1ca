"""Profile columns while rows are filtered by other columns.

Conditions are combined by AND. The profile of a column that has a condition of its own shows the
rows that pass all other conditions, so that its bars stay and another part of them can be chosen.
The bars are those of the profile of all rows: the two can be drawn over each other.

``crossed_profiles`` counts the rows of a random sample, ``exact_crossed_profile`` all rows.

Layout of ``to_json``: ``sampled`` rows of the sample, ``passing`` rows among them that pass all
conditions, ``num_rows`` of the version, ``profiles`` (see ``column_profile``; ``sample`` is passing
where they are of those rows of the sample that pass).

Limits: ``MAX_CONDITIONS`` conditions; ``MAX_COLUMNS`` columns at a time.
Not supported: profiles of rows that a view chose, or of nearest neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.explorer import cells
from lance_nb.explorer.rows.column_profile import (
    MAX_COLUMNS,
    BarPlaces,
    ColumnProfile,
    bar_places,
    exact_profile,
    profile_kind,
    profile_of,
)
from lance_nb.explorer.rows.row_order import Progress
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.rows.row_sample import Mask, RowSample
from lance_nb.explorer.source import ScannedSource, Source
from lance_nb.value_classes import dataclass

MAX_CONDITIONS = 64


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on rows; ``column``: the one whose profile it was chosen in, None for others."""

    column: str | None
    where: str


@dataclass(frozen=True, slots=True)
class CrossFilter:
    """Conditions on the rows of a version, with what profiles under them need.

    ``query`` says which columns the grid has; ``shown`` are the profiles of all rows by the place
    of their column, whose bars are kept.
    """

    sample: RowSample
    query: RowQuery
    conditions: Sequence[Condition]
    shown: Mapping[int, ColumnProfile]

    def passing(self, name: str | None = None) -> Mask:
        """Tell of each row of the sample whether it passes all conditions but those of a column."""
        mask: Mask = np.ones(self.sample.num_rows, np.bool_)
        for condition in self.conditions:
            if name is None or condition.column != name:
                mask = mask & self.sample.passes(condition.where)
        return mask


@dataclass(frozen=True, slots=True)
class CrossedProfiles:
    """Profiles of the rows of a sample that pass conditions."""

    sampled: int
    passing: int
    num_rows: int
    profiles: tuple[ColumnProfile, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        profiles = [profile.to_json() for profile in self.profiles]
        return {
            "sampled": self.sampled,
            "passing": self.passing,
            "num_rows": self.num_rows,
            "profiles": profiles,
        }


def crossed_profiles(
    dataset: Source, cross: CrossFilter, columns: Sequence[int], progress: Progress
) -> CrossedProfiles:
    """Profile columns of the grid, given by their places, by the rows of a sample that pass.

    ``progress`` is called before every step of reading, and what it raises ends the work. Raises
    PredicateError.
    """
    sample = cross.sample
    fields = {field.name: field for field in dataset.schema}
    names = cross.query.names(dataset)
    chosen_fields = [
        (index, fields[names[index]])
        for index in columns[:MAX_COLUMNS]
        if index < len(names) and names[index] in fields and profile_kind(fields[names[index]].type)
    ]
    for condition in cross.conditions:
        progress(0, 1)
        sample.passes(condition.where)
    read = sample.read([field.name for _, field in chosen_fields], progress)
    kind = "all" if sample.num_rows >= sample.of_rows else "passing"
    profiles = []
    for index, field in chosen_fields:
        column = cells.plain(read[field.name])
        passing = column.filter(pa.array(cross.passing(field.name)))
        places = bar_places(cross.shown.get(index), column)
        profiles.append(profile_of(index, field, passing, sample=kind, places=places))
    count = int(cross.passing().sum())
    return CrossedProfiles(sample.num_rows, count, sample.of_rows, tuple(profiles))


def exact_crossed_profile(
    dataset: ScannedSource, cross: CrossFilter, index: int, progress: Progress
) -> ColumnProfile:
    """Profile one column by all rows that pass the conditions on other columns.

    Raises NotSupportedError, PredicateError.
    """
    names = cross.query.names(dataset)
    name = names[index] if index < len(names) else ""
    other_conditions = [
        f"({condition.where})" for condition in cross.conditions if condition.column != name
    ]
    places: BarPlaces | None = None
    if name in dataset.schema.names and profile_kind(dataset.schema.field(name).type):
        places = bar_places(cross.shown.get(index), cells.plain(cross.sample.read([name])[name]))
    where = " AND ".join(other_conditions) or None
    passing = RowQuery(where, cross.query.system, None, cross.query.columns)
    return exact_profile(dataset, index, passing, progress=progress, places=places)
