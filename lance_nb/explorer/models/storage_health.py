"""What would do the storage of a version good, each with the line of code that does it.

Layout of ``to_json``, a list of ``{key, title, text, python, stage, fragment}``: ``stage`` is the
card that the tab *Stage* makes of it (``{verb, ...}`` or null), ``fragment`` the worst one.

================ =====================================================================
``key``          when
================ =====================================================================
``deletions``    fragments of which ``DELETED_SHARE`` or more is deleted: reading skips the rows
                 but the bytes are still there
``small``        two or more neighbouring fragments below the rows that compaction aims at
``files``        fragments of more than ``MANY_FILES`` data files: one read per file
``index <name>`` fragments that an index does not cover: they are searched without it
================ =====================================================================

Limits: ``MAX_INDICES`` indices. Everything comes from the manifest.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_nb.code_lines import Python
from lance_nb.explorer.models import text
from lance_nb.explorer.models.fragment_map import covered_ids
from lance_nb.explorer.models.source import StoredSource
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.scan_plan import counts_of

DELETED_SHARE = 0.1
TARGET_ROWS = 1024 * 1024
MANY_FILES = 8
MAX_INDICES = 20

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that could be done."""

    key: str
    title: str
    text: str
    python: str
    stage: dict[str, Any] | None
    fragment: int

    def to_json(self) -> dict[str, Any]:
        """Return the advice as JSON-able values."""
        return asdict(self)


def storage_health(dataset: StoredSource) -> tuple[Advice, ...]:
    """Return what would do good, the most useful first; empty when all is well."""
    counts = counts_of(dataset.opened[1])
    if not len(counts.ids):
        return ()
    found = [_deletions(dataset, counts), _small(dataset, counts), _files(dataset, counts)]
    found += [
        _unindexed(dataset, counts, name, ids)
        for name, ids in list(covered_ids(dataset).items())[:MAX_INDICES]
        if not name.startswith("__")
    ]
    return tuple(one for one in found if one is not None)


def compacts(dataset: StoredSource, **options: object) -> str:
    """Return the line that compacts the newest version of the branch."""
    place = {} if dataset.branch is None else {"version": (dataset.branch, None)}
    opened = Python("lance_nb.dataset").call(dataset.uri, **place)
    return opened.attribute("optimize.compact_files").call(**options).line()


def _deletions(dataset: StoredSource, counts: FragmentCounts) -> Advice | None:
    share = counts.num_deleted_rows / np.maximum(counts.physical_rows, 1)
    many = share >= DELETED_SHARE
    if not many.any():
        return None
    rows = int(counts.num_deleted_rows[many].sum())
    freed = int((counts.size_bytes * share)[many].sum())
    return Advice(
        key="deletions",
        title="Deleted rows still take room",
        text=(
            f"{text.plural(rows, 'deleted row')} in "
            f"{text.plural(int(many.sum()), 'fragment')} "
            f"with {100 * DELETED_SHARE:.0f} % deleted or more; without them about "
            f"{text.size(freed)} less is read. The old files go with the next clean-up."
        ),
        python=compacts(dataset, materialize_deletions_threshold=DELETED_SHARE),
        stage={"verb": "compact", "materialize_deletions_threshold": DELETED_SHARE},
        fragment=int(counts.ids[int(share.argmax())]),
    )


def _small(dataset: StoredSource, counts: FragmentCounts) -> Advice | None:
    small = counts.num_rows < TARGET_ROWS
    neighbours = np.zeros(len(small), np.bool_)
    neighbours[:-1] |= small[:-1] & small[1:]
    neighbours[1:] |= small[1:] & small[:-1]
    if not neighbours.any():
        return None
    rows = int(counts.num_rows[neighbours].sum())
    left = max(1, -(-rows // TARGET_ROWS))
    least = int(counts.ids[int(np.where(neighbours, counts.num_rows, TARGET_ROWS).argmin())])
    return Advice(
        key="small",
        title="Small fragments",
        text=(
            f"{text.plural(rows, 'row')} in {text.plural(int(neighbours.sum()), 'fragment')} "
            "that could be larger; compaction would make about "
            f"{text.plural(left, 'fragment')} of up to {text.count(TARGET_ROWS)} rows of them."
        ),
        python=compacts(dataset),
        stage={"verb": "compact"},
        fragment=least,
    )


def _files(dataset: StoredSource, counts: FragmentCounts) -> Advice | None:
    many = counts.num_data_files > MANY_FILES
    if not many.any():
        return None
    worst = int(counts.num_data_files.argmax())
    return Advice(
        key="files",
        title="Many files per fragment",
        text=(
            f"More than {MANY_FILES} data files in "
            f"{text.plural(int(many.sum()), 'fragment')} (up to "
            f"{int(counts.num_data_files[worst])}): each column that was added or rewritten by "
            "itself is one more. A compaction writes them as one."
        ),
        python=compacts(dataset, target_rows_per_fragment=TARGET_ROWS),
        stage={"verb": "compact", "target_rows_per_fragment": TARGET_ROWS},
        fragment=int(counts.ids[worst]),
    )


def _unindexed(
    dataset: StoredSource, counts: FragmentCounts, name: str, covered: set[int]
) -> Advice | None:
    missing: Mask = ~np.isin(counts.ids, np.fromiter(covered, np.int64, len(covered)))
    if not missing.any():
        return None
    rows = int(counts.num_rows[missing].sum())
    opened = Python("lance.dataset").call(dataset.uri)
    line = opened.attribute("optimize.optimize_indices").call().line()
    return Advice(
        key=f"index {text.name(name)}",
        title=f"Index {text.name(name)} does not cover everything",
        text=(
            f"{text.plural(rows, 'row')} in {text.plural(int(missing.sum()), 'fragment')} "
            "are searched without it. Building indices needs pylance."
        ),
        python=f"import lance; {line}",
        stage=None,
        fragment=int(counts.ids[int(missing.argmax())]),
    )
