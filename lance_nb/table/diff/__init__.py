"""The differences between two versions: manifests, rows, cells; and the history of single rows.

``merge_base`` finds the two versions, ``version_diff`` has the value that users hold. Nothing here
writes.
"""

from lance_nb.table.diff.compare_plan import has_row_ids
from lance_nb.table.diff.feed import make_feed
from lance_nb.table.diff.row_history import find_history
from lance_nb.table.diff.version_diff import Diff, make_diff

__all__ = ["Diff", "find_history", "has_row_ids", "make_diff", "make_feed"]
