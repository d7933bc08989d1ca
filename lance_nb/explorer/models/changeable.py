"""What the views that write ask of a dataset: all of ``LanceDataset``."""

from __future__ import annotations

from typing import cast

from lance_nb.dataset import LanceDataset
from lance_nb.errors import NotSupportedError
from lance_nb.explorer.models.source import Source


def changeable(dataset: Source) -> LanceDataset:
    """Return the dataset as one that can be changed. Raises NotSupportedError."""
    if not hasattr(dataset, "opened"):
        raise NotSupportedError(f"{type(dataset).__name__} cannot be changed from here")
    return cast("LanceDataset", dataset)
