"""Every public name of pylance's classes is here, with its arguments, or on a list with the reason.

The lists are short and must stay true: what is on them and is here all the same fails as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

_LATER = "building indices comes later; those that are there are described, kept up and dropped"
_MEM_WAL = "the log in memory belongs to a server that writes on behalf of others"
_SESSION = "there is no cache that several datasets share; each handle keeps its own"
_BATCHES = "takes any stream of batches through execute"

# Names of pylance's that we do not have.
ABSENT: dict[str, dict[str, str]] = {
    "LanceDataset": {
        "centroids": _LATER,
        "commit_existing_index_segments": _LATER,
        "create_index_uncommitted": _LATER,
        "get_ivf_model": _LATER,
        "merge_existing_index_segments": _LATER,
        "merge_index_metadata": _LATER,
        "from_pydantic_model": "rows come as Arrow; a model turns into a table in one line",
        "initial_storage_options": "options are given to each dataset and do not change",
        "latest_storage_options": "options are given to each dataset and do not change",
        "storage_options_accessor": "options are given to each dataset and do not change",
        "initialize_mem_wal": _MEM_WAL,
        "mem_wal_index_details": _MEM_WAL,
        "mem_wal_writer": _MEM_WAL,
        "io_stats_incremental": "requests are counted by a meter around the store, storage.metered",
        "io_stats_snapshot": "requests are counted by a meter around the store, storage.metered",
        "new_file_session": _SESSION,
        "session": _SESSION,
    },
    "LanceFragment": {
        "open_session": _SESSION,
        "validate": "LanceDataset.validate checks every fragment",
    },
    "optimize": {},
    "stats": {},
    "tags": {},
    "branches": {},
    "merge_insert": {
        "analyze_plan_batches": _BATCHES,
        "execute_batches": _BATCHES,
        "execute_uncommitted_batches": _BATCHES,
    },
}
_NAMESPACES = {"namespace_client", "table_id", "namespace_client_managed_versioning"}
# Arguments of pylance's that have no meaning here; the docstrings say so.
WITHOUT: dict[str, set[str]] = {
    "LanceDataset.commit": _NAMESPACES | {"base_store_params"},
    "LanceDataset.commit_batch": {"base_store_params"},
}
# Defaults that differ on purpose.
OTHER_DEFAULTS = {
    "LanceDataset.take_blobs": {"buffer_size"},  # files are read without a buffer
}


@cache
def classes() -> dict[str, tuple[type, type]]:
    """Pylance's classes and ours, by the name under which they are found."""
    lance = require_pylance()
    table = pa.table({"a": [1]})
    theirs = lance.write_dataset(table, "memory://signatures")
    ours = lance_nb.write_dataset(table, "memory://signatures", mode="overwrite")
    found: dict[str, tuple[type, type]] = {
        "LanceDataset": (lance.LanceDataset, lance_nb.LanceDataset),
        "LanceFragment": (lance.LanceFragment, lance_nb.LanceFragment),
        "merge_insert": (type(theirs.merge_insert("a")), type(ours.merge_insert("a"))),
    }
    for name in ("optimize", "stats", "tags", "branches"):
        found[name] = (type(getattr(theirs, name)), type(getattr(ours, name)))
    return found


def public(one: type) -> set[str]:
    return {name for name in dir(one) if not name.startswith("_")}


@pytest.mark.parametrize("owner", ABSENT)
def test_every_name_of_pylance_is_here_or_on_the_list(owner: str) -> None:
    theirs, ours = classes()[owner]
    assert public(theirs) - public(ours) == set(ABSENT[owner])
    assert all(len(reason) > 20 for reason in ABSENT[owner].values())


def shared(owner: str) -> Iterator[tuple[str, Any, Any]]:
    """Methods that both have, with their arguments by name."""
    theirs, ours = classes()[owner]
    for name in sorted(public(theirs) & public(ours)):
        other = inspect.getattr_static(theirs, name)
        mine = inspect.getattr_static(ours, name)
        assert isinstance(other, property) == isinstance(mine, property), name
        if not isinstance(other, property):
            yield (
                name,
                *(inspect.signature(getattr(one, name)).parameters for one in (theirs, ours)),
            )


@pytest.mark.parametrize("owner", ABSENT)
def test_arguments_and_defaults_are_pylances(owner: str) -> None:
    problems = []
    for name, theirs, ours in shared(owner):
        place = f"{owner}.{name}"
        takes_more = any(one.kind is one.VAR_KEYWORD for one in ours.values())
        named = [
            one for one in theirs.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        ]
        missing = {one.name for one in named if one.name not in ours}
        if not takes_more and missing != WITHOUT.get(place, set()):
            problems.append(f"{place} takes no {sorted(missing)}")
        differing = {
            one.name
            for one in named
            if one.name in ours
            and one.default is not one.empty
            and one.default != ours[one.name].default
        }
        if differing != OTHER_DEFAULTS.get(place, set()):
            problems.append(f"{place} has other defaults for {sorted(differing)}")
        positional = [one.name for one in ours.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        both = [one.name for one in named if one.name in positional]
        if [one for one in positional if one in both] != both:
            problems.append(f"{place} takes {positional} in another order")
    assert problems == []


def test_a_name_of_ours_alone_is_documented() -> None:
    for owner in ABSENT:
        theirs, ours = classes()[owner]
        own = public(ours) - public(theirs)
        assert [name for name in own if not inspect.getdoc(getattr(ours, name))] == []
