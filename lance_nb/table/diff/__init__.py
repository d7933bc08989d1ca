"""What differs between two versions: manifests, rows, cells; and the life of single rows.

``ends`` says which two versions; ``value`` is what users hold. Nothing here writes.
"""

from lance_nb.table.diff.ends import target_of
from lance_nb.table.diff.value import Diff, make_diff

__all__ = ["Diff", "make_diff", "target_of"]
