"""The façade: a dataset at one version, as pylance's Python API names things.

Every method here is a short delegation; the work is on the floors below.
"""

from lance_nb.dataset.dataset import LanceDataset
from lance_nb.dataset.fragment import LanceFragment
from lance_nb.dataset.functions import dataset
from lance_nb.dataset.scanner import LanceScanner
from lance_nb.dataset.stats import DatasetStats

__all__ = [
    "DatasetStats",
    "LanceDataset",
    "LanceFragment",
    "LanceScanner",
    "dataset",
]
