"""Handles of versions that are not the newest, or that are gone: every verb, beside pylance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_nb

pytestmark = pytest.mark.interop

ROWS = pa.table({"a": pa.array(range(4), pa.int64()), "b": ["x"] * 4})
MORE = pa.table({"a": pa.array([9], pa.int64()), "b": ["q"]})

VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "update_config": lambda _, d: d.update_config({"k": "v"}),
    "delete_config_keys": lambda _, d: d.delete_config_keys(["x"]),
    "update_metadata": lambda _, d: d.update_metadata({"k": "v"}),
    "update_schema_metadata": lambda _, d: d.update_schema_metadata({"k": "v"}),
    "replaced schema metadata": lambda _, d: d.update_schema_metadata({"k": "v"}, replace=True),
    "update_field_metadata": lambda _, d: d.update_field_metadata({"a": {"k": "v"}}),
    "replaced field metadata": lambda _, d: d.update_field_metadata({"a": {}}, replace=True),
    "insert": lambda _, d: d.insert(ROWS),
    "overwrite": lambda _, d: d.insert(ROWS, mode="overwrite"),
    "append": lambda m, d: m.write_dataset(ROWS, d, mode="append"),
    "delete": lambda _, d: d.delete("a = 1"),
    "update": lambda _, d: d.update({"b": "'y'"}, where="a = 2"),
    "merge_insert": lambda _, d: d.merge_insert("a").when_not_matched_insert_all().execute(ROWS),
    "alter_columns": lambda _, d: d.alter_columns({"path": "b", "name": "bb"}),
    "drop_columns": lambda _, d: d.drop_columns(["b"]),
    "index": lambda _, d: d.create_scalar_index("a", "BTREE"),
    "restore": lambda _, d: d.restore(),
    "tag": lambda _, d: d.tags.create("t"),
    "branch": lambda _, d: d.create_branch("side").version,
    "cleanup": lambda _, d: d.cleanup_old_versions(timedelta(0)).old_versions,
    "checkout of itself": lambda _, d: d.checkout_version(d.version).count_rows(),
    "checkout_latest": lambda _, d: d.checkout_latest() and None,
    "scan": lambda _, d: d.to_table(filter="a > 1").num_rows,
    "count": lambda _, d: d.count_rows(),
    "versions": lambda _, d: [one["version"] for one in d.versions()],
}  # fmt: skip


def remove(uri: str, version: int) -> None:
    Path(uri, "_versions", f"{2**64 - 1 - version:020d}.manifest").unlink()


@pytest.mark.parametrize("gone", [(), (3, 4), (2,), (1, 2, 3, 4)], ids=str)
def test_every_verb_of_a_stale_handle_does_what_pylance_does(
    tmp_path: Path, gone: tuple[int, ...]
) -> None:
    for name, verb in VERBS.items():
        outcomes = []
        for module in (lance_nb, lance):
            uri = f"{tmp_path}/{name}-{module.__name__}"
            module.write_dataset(ROWS, uri)
            module.write_dataset(ROWS, uri, mode="append")
            handle, other = module.dataset(uri), module.dataset(uri)
            other.update_config({"o": "1"})
            other.update_config({"p": "1"})
            module.write_dataset(MORE, uri, mode="append")
            for version in gone:
                remove(uri, version)
            try:
                result = verb(module, handle)
            except (OSError, ValueError):
                outcomes.append(None)
                continue
            newest = lance.dataset(uri)
            outcomes.append((
                result if isinstance(result, int | list) else None,
                handle.version,
                newest.version,
                sorted(newest.to_table().to_pylist(), key=str),
                newest.config(),
                newest.schema.metadata,
                newest.schema.field(0).metadata,
            ))  # fmt: skip
        assert outcomes[0] == outcomes[1], name
