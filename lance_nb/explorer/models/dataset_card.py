"""The header of a dataset: name, where it stands, and the figures one looks at first.

Layout of ``to_json``: ``name``, ``uri``, ``branch``, ``version``, ``label`` ("main:42"), ``tags``
of this version, ``latest`` (newest version of the branch), ``facts`` (``{key, value, title}``
each).

Limits: at most ``MAX_TAGS`` tags are named. Reads metadata only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_nb.explorer.models import text
from lance_nb.explorer.models.flat import flat
from lance_nb.explorer.models.source import Source

MAX_TAGS = 8


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure: ``value`` is what the eye reads, ``title`` the sentence behind it."""

    key: str
    value: str
    title: str


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """The header card of one version of a dataset."""

    name: str
    uri: str
    branch: str | None
    version: int
    label: str
    latest: int
    tags: tuple[str, ...]
    facts: tuple[Fact, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the card as JSON-able values."""
        return flat(self) | {"tags": list(self.tags), "facts": [flat(f) for f in self.facts]}


def dataset_card(dataset: Source, latest: int | None = None) -> DatasetCard:
    """Read the card of ``dataset`` at its version; ``latest`` saves a listing when it is known."""
    info = dataset.version_info(dataset.version)
    return DatasetCard(
        name=text.name(dataset.name),
        uri=text.line(dataset.uri),
        branch=None if dataset.branch is None else text.name(dataset.branch),
        version=dataset.version,
        label=text.ref_label(dataset.branch, dataset.version),
        latest=dataset.latest_version if latest is None else latest,
        tags=tuple(text.name(tag) for tag in info.tags[:MAX_TAGS]),
        facts=_facts(dataset),
    )


def _facts(dataset: Source) -> tuple[Fact, ...]:
    stats = dataset.stats()
    physical = stats.num_rows + stats.num_deleted_rows
    deleted = text.share(stats.num_deleted_rows, physical)
    num_columns = len(dataset.schema)
    facts = [
        Fact("rows", text.count(stats.num_rows), f"{text.count(stats.num_rows)} live rows"),
        Fact("columns", text.count(num_columns), "columns at the top level of the schema"),
        Fact(
            "size",
            "unknown" if stats.size_bytes is None else text.size(stats.size_bytes),
            "bytes of the data files that this version uses",
        ),
        Fact(
            "fragments",
            text.count(stats.num_fragments),
            f"{text.plural(stats.num_fragments, 'fragment')} "
            f"in {text.plural(stats.num_data_files, 'data file')}",
        ),
        Fact(
            "deleted",
            deleted,
            f"{text.count(stats.num_deleted_rows)} of {text.count(physical)} stored rows "
            "are marked deleted",
        ),
        Fact("format", text.name(dataset.data_storage_version), "version of the data file format"),
    ]
    return tuple(facts)
