"""``lance_nb.diff``: compare two versions of a dataset that is not open yet."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lance_nb.dataset.opened import OpenedVersion
from lance_nb.dataset.opening import dataset
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.diff import Diff
from lance_nb.table.refs import Ref


def diff(
    uri: str | os.PathLike[str],
    a: Ref | OpenedVersion,
    b: Ref | OpenedVersion | None = None,
    *,
    key: Sequence[str] | str | None = None,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
) -> Diff:
    """Compare two versions of the dataset at ``uri``; arguments as for ``LanceDataset.diff``.

    ``b`` is the newest version of main when it is left out.
    """
    opened = dataset(uri, storage_options=storage_options, allow_bases=allow_bases)
    return opened.diff(a, b, key=key)
