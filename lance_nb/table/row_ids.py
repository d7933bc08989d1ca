"""Row ids of a fragment's rows, from wherever the fragment keeps them.

A dataset with stable row ids stores a sequence per fragment, one id per physical row; without them
a row's id is its address.

Source: messages RowIdSequence and DataFragment of lance.table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.row_id_sequence import RowIdSequence
from lance_nb.table.fragment_reader import num_physical_rows
from lance_nb.table.snapshot import Snapshot


def fragment_row_ids(snapshot: Snapshot, fragment: Fragment) -> npt.NDArray[np.uint64] | None:
    """Return the id of every physical row (uint64), None without stable row ids."""
    if fragment.row_ids is None:
        return None
    if not isinstance(fragment.row_ids, InlineSequence):
        raise NotSupportedError(
            f"fragment {fragment.id} keeps its row ids outside of the manifest, which this release "
            "cannot read"
        )
    sequence = RowIdSequence.from_bytes(fragment.row_ids.data, snapshot.manifest.path)
    expected = num_physical_rows(snapshot, fragment)
    if sequence.num_rows != expected:
        raise CorruptFileError(
            snapshot.manifest.path,
            None,
            f"{expected} row ids for fragment {fragment.id}",
            str(sequence.num_rows),
        )
    return sequence.to_numpy()
