"""The catalogue of verbs: every way to write a dataset, with the dataset that it is tried on.

All kinds of faults take their verbs from here. A test compares the list with the public methods.
"""

from __future__ import annotations

from tests.faults.verbs.columns import COLUMNS_VERBS
from tests.faults.verbs.history import HISTORY_VERBS
from tests.faults.verbs.jobs import JOBS_VERBS
from tests.faults.verbs.rows import ROWS_VERBS
from tests.faults.verbs.upkeep import UPKEEP_VERBS
from tests.faults.verbs.verb import Verb

VERBS: dict[str, Verb] = {
    **ROWS_VERBS,
    **COLUMNS_VERBS,
    **HISTORY_VERBS,
    **UPKEEP_VERBS,
    **JOBS_VERBS,
}
