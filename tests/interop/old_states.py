"""What pylance and lance_nb make of a dataset that an old release left: read it, write it.

As a script it compares any datasets and prints the differences, verb by verb:

    python -m tests.interop.old_states DATASET...
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.errors import LanceError
from lance_nb.format.fragment import Fragment
from lance_nb.table.indices import read_indices

Verb = Callable[[Any, Any, str], object]
REFUSALS = (LanceError, OSError, ValueError, RuntimeError, NotImplementedError)


def _rows(dataset: Any) -> pa.Table:
    """Return two rows of nulls for a dataset, with a key."""
    schema = dataset.schema
    columns = [pa.nulls(2, one.type) for one in schema]
    columns[0] = pa.array([900, 901], pa.int64()).cast(schema.field(0).type)
    return pa.table(columns, schema=schema)


def _key(dataset: Any) -> str:
    return str(dataset.schema.names[0])


WRITES: dict[str, Verb] = {
    "append": lambda lance, ds, path: lance.write_dataset(_rows(ds), path, mode="append"),
    "delete": lambda _, ds, __: ds.delete(f"{_key(ds)} % 3 = 0"),
    "delete nothing": lambda _, ds, __: ds.delete("false"),
    "delete all": lambda _, ds, __: ds.delete("true"),
    "update": lambda _, ds, __: ds.update({_key(ds): f"{_key(ds)} + 100"}, where=f"{_key(ds)} = 1"),
    "upsert": lambda _, ds, __: (
        ds.merge_insert(_key(ds))
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(ds.to_table(limit=2))
    ),
    "add": lambda _, ds, __: ds.add_columns({"new": f"{_key(ds)} * 3"}),
    "drop": lambda _, ds, __: ds.drop_columns([ds.schema.names[-1]]),
    "rename": lambda _, ds, __: ds.alter_columns({"path": _key(ds), "name": "other"}),
    "compact": lambda _, ds, __: ds.optimize.compact_files(materialize_deletions_threshold=0.0),
    "index": lambda _, ds, __: ds.create_scalar_index(_key(ds), "BTREE", name="new"),
    "clean": lambda _, ds, __: ds.cleanup_old_versions(timedelta(0)),
    "tag": lambda _, ds, __: ds.tags.create("t", ds.version),
    "branch": lambda _, ds, __: ds.create_branch("b"),
    "restore": lambda lance, _, path: lance.dataset(path, version=1).restore(),
    "config": lambda _, ds, __: ds.update_config({"k": "v"}),
    "overwrite": lambda lance, _, path: lance.write_dataset(
        pa.table({"z": [1, 2]}), path, mode="overwrite", data_storage_version="2.0"
    ),
}


def attempt(action: Callable[[], Any]) -> Any:
    """Return what an action returns, or the error that it ends with."""
    try:
        return action()
    except (*REFUSALS, pa.ArrowException) as error:
        return error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust
            raise
        return RuntimeError(str(error))


def content(lance: Any, path: str) -> object:
    """Return the newest version as a library reads it: schema, number of rows, rows sorted."""
    dataset = lance.dataset(path)
    table = dataset.to_table()
    return str(table.schema), dataset.count_rows(), sorted(map(str, table.to_pylist()))


def describe(path: str) -> dict[str, object]:
    """Return what the newest manifest says, file names replaced by numbers."""
    snapshot = lance_nb.dataset(path).opened[1]
    manifest = snapshot.manifest
    names: dict[str, int] = {}
    return {
        "version": manifest.version,
        "fragments": [_fragment(one, names) for one in manifest.fragments],
        "schema": [
            (one.id, one.parent_id, one.name, one.logical_type, one.nullable, one.dictionary)
            for one in manifest.schema.walk()
        ],
        "flags": (manifest.reader_feature_flags, manifest.writer_feature_flags),
        "highest fragment": manifest.max_fragment_id,
        "format": manifest.data_format,
        "next row id": manifest.next_row_id,
        "highest field": manifest.max_allocated_field_id,
        "config": dict(manifest.config),
        "indices": sorted(
            (one.name, one.fields, _covered(one), sorted((f.path, f.size_bytes) for f in one.files))
            for one in read_indices(snapshot)
            if one.name != "new"  # its files differ
        ),
    }


def _covered(index: Any) -> list[int] | None:
    found = index.fragment_ids()
    return None if found is None else sorted(found)


def _fragment(one: Fragment, names: dict[str, int]) -> tuple[object, ...]:
    files = [
        (
            names.setdefault(file.path, len(names)),
            file.fields,
            file.column_indices,
            file.file_version,
            file.size_bytes if file.is_legacy else file.size_bytes > 0,
        )
        for file in one.files
    ]
    return one.id, one.physical_rows, one.num_deleted_rows, files


def is_unwritable(outcome: object) -> bool:
    """Tell whether lance_nb refused because it does not write 0.1 files."""
    return isinstance(outcome, LanceError) and "cannot be written; use 2.0" in str(outcome)


def differences(source: Path, verb: str) -> Iterator[tuple[str, object, object]]:
    """Do a verb to copies of a dataset with both libraries; yield (what, pylance's, ours)."""
    import lance

    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}/d.lance" for name in ("lance", "lance_nb")]
        outcomes = []
        for path, library in zip(paths, (lance, lance_nb), strict=True):
            shutil.copytree(source, path)
            write = WRITES[verb]
            found = attempt(lambda lib=library, at=path, do=write: do(lib, lib.dataset(at), at))
            outcomes.append(found if isinstance(found, Exception) else None)
        theirs, ours = outcomes
        if is_unwritable(ours) or (theirs is not None and ours is not None):
            return
        if theirs is not None or ours is not None:
            yield "outcome", theirs, ours
            return
        expected, found = (attempt(lambda at=path: content(lance, at)) for path in paths)
        if isinstance(expected, Exception) or expected != found:
            yield "content", expected, found
        again = attempt(lambda: content(lance_nb, paths[1]))
        if isinstance(again, Exception) or again != found:
            yield "content as lance_nb reads it", found, again
        before, after = (attempt(lambda at=path: describe(at)) for path in paths)
        if isinstance(before, Exception) or isinstance(after, Exception):
            yield "manifest", before, after
            return
        yield from ((name, before[name], after[name]) for name in before
                    if before[name] != after[name])  # fmt: skip


def main(arguments: list[str]) -> None:
    """Print every difference of every dataset."""
    for path in map(Path, arguments):
        for verb in WRITES:
            for what, theirs, ours in differences(path, verb):
                print(
                    f"{path} {verb}: {what}\n  pylance  {theirs!s:.600}\n  lance_nb {ours!s:.600}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
