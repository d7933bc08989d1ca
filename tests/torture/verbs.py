"""Every verb that writes a local dataset; a test compares the list with the public methods."""

from __future__ import annotations

from tests.torture.columns_verbs import COLUMNS_VERBS
from tests.torture.history_verbs import HISTORY_VERBS
from tests.torture.rows_verbs import ROWS_VERBS
from tests.torture.upkeep_verbs import UPKEEP_VERBS
from tests.torture.verb import Verb

VERBS: dict[str, Verb] = {**ROWS_VERBS, **COLUMNS_VERBS, **HISTORY_VERBS, **UPKEEP_VERBS}
