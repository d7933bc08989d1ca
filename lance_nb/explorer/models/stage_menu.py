"""What can be staged on a dataset, and what a form offers: columns, variables, versions, names.

Layout of ``to_json``: ``{verbs: [{name, label, group, fields}], columns: [{name, sql, type}],
rows: [{name, kind, text}], tags, branches, versions: [text], spark: text}``. ``spark`` says in one
line whether Spark can be used; starting it is done only when asked for.

Limits: ``MAX_COLUMNS`` columns, ``MAX_NAMES`` tags, branches and versions.
"""

from __future__ import annotations

from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.engines import engines
from lance_nb.explorer.models import text
from lance_nb.explorer.models.filter_conditions import column_sql
from lance_nb.explorer.models.schema_tree import type_label
from lance_nb.explorer.staging.rows import Namespace, offered
from lance_nb.explorer.staging.wishes import VERBS

MAX_COLUMNS = 2000
MAX_NAMES = 100


def stage_menu(dataset: LanceDataset, namespace: Namespace) -> dict[str, Any]:
    """Return the menu as JSON-able values."""
    tags = sorted(dataset.tags.names())[:MAX_NAMES]
    branches = sorted(dataset.branches.names())[:MAX_NAMES]
    numbers = list(dataset.version_numbers())[-MAX_NAMES:]
    here = text.name(dataset.branch or "main")
    return {
        "verbs": [verb.to_json() for verb in VERBS.values()],
        "columns": [
            {
                "name": text.name(field.name),
                "value": field.name,
                "sql": column_sql(field.name),
                "type": type_label(field.type),
            }
            for field in list(dataset.schema)[:MAX_COLUMNS]
        ],
        "rows": offered(namespace, dataset.schema),
        "tags": tags,
        "branches": branches,
        "versions": [f"{here}:{number}" for number in reversed(numbers)] + tags,
        "spark": _spark(namespace),
    }


def _spark(namespace: Namespace) -> str:
    if engines().find_session(namespace) is not None:
        return "a Spark session is there"
    return engines().why_not() or "a local Spark session would be started"
