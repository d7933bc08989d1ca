"""The demo dataset: a catalogue of street photographs with a history worth looking at.

::

    DEMO = demo_dataset("data/demo.lance")    written when it is not there, in a few seconds
    ds = demo_copy("data/mine.lance", DEMO)   main with all its versions, to change as you like
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lance_nb.dataset import LanceDataset, dataset
from lance_nb.magic.demo.history import ensure, remove

__all__ = ["demo_copy", "demo_dataset"]


def demo_dataset(path: str | os.PathLike[str] = "data/demo.lance") -> str:
    """Write the demo dataset unless it is there, and return its path.

    Raises InvalidInputError where something else is there.
    """
    ensure(Path(path))
    return os.fspath(path)


def demo_copy(
    path: str | os.PathLike[str], source: str | os.PathLike[str] = "data/demo.lance"
) -> LanceDataset:
    """Copy main of the demo dataset with its whole history and tags; an older copy is replaced.

    The branches stay behind: their versions name files of the dataset that they were made in by
    its absolute path. Raises InvalidInputError where something else is at ``path``.
    """
    place = Path(path)
    if place.exists():
        remove(place)
    shutil.copytree(source, place, ignore=shutil.ignore_patterns("tree", "branches"))
    return dataset(place)
