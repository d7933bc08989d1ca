"""The outline of a long history: rows and bytes of a sample of the versions of a branch.

Layout of ``HistoryOutline.to_json``::

    points   [[version, rows | null, bytes | null], ...]   null: not recorded, or a damaged manifest
    left     versions of the request that were not read in time, to be asked for again
    most     how many versions it is worth to read of this dataset in all

Each version costs its manifest. A request reads for ``STEP_SECONDS`` at the most and at least one
version, so that the requests of a person that wait behind it are answered soon.

Limits: ``MAX_POINTS`` versions in one request and for one outline; ``MAX_REMOTE`` for a dataset
in an object store. Versions that were cleaned up since they were listed are left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from lance_nb.errors import LanceError, VersionNotFoundError
from lance_nb.explorer.source import Source, is_on_this_machine
from lance_nb.value_classes import dataclass

MAX_POINTS = 256
MAX_REMOTE = 32
STEP_SECONDS = 0.04


@dataclass(frozen=True, slots=True)
class OutlinePoint:
    """Rows and bytes of one version, ``None`` when they are not known."""

    version: int
    rows: int | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class HistoryOutline:
    """Some versions of a branch, those that were not read in time, and how many are worth it."""

    points: tuple[OutlinePoint, ...]
    left: tuple[int, ...]
    most: int

    def to_json(self) -> dict[str, Any]:
        """Return the outline as JSON-able values."""
        return {
            "points": [[point.version, point.rows, point.size_bytes] for point in self.points],
            "left": list(self.left),
            "most": self.most,
        }


def history_outline(
    dataset: Source, numbers: Sequence[int], seconds: float = STEP_SECONDS
) -> HistoryOutline:
    """Read versions of the branch that ``dataset`` is on, in the order given, for some seconds."""
    end = time.monotonic() + seconds
    points: list[OutlinePoint] = []
    done = 0
    for number in numbers:
        if done and time.monotonic() >= end:
            break
        done += 1
        try:
            info = dataset.version_info(number, with_tags=False)
        except VersionNotFoundError:
            continue
        except LanceError:
            points.append(OutlinePoint(number, None, None))
            continue
        points.append(OutlinePoint(number, info.num_rows, info.size_bytes))
    most = MAX_POINTS if is_on_this_machine(dataset.uri) else MAX_REMOTE
    return HistoryOutline(tuple(points), tuple(numbers[done:]), most)
