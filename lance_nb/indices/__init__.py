"""Search the files of indices: a floor between ``table`` and ``transactions``.

``scalar_search`` is what a scan of one version hands to the scan planner. Below it: questions that
indices can answer (``leaf``), the readers of each kind (``kinds``, known to ``registry``), and what
turns the rows in a file into rows of the version (``segment``).
"""

from lance_nb.indices.search import ScalarSearch, scalar_search

__all__ = ["ScalarSearch", "scalar_search"]
