"""Two changes made for the same version, committed one after the other, by us or by pylance.

Every kind of change is made once by pylance on a copy of the same small dataset. Its transaction is
parsed, so that our commit can make the very same change (the files it wrote are put in place). The
outcome of a pair is compared with the two serial orders, both made by pylance.
"""

from __future__ import annotations

import os
import shutil
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import Fragment
from lance_nb.storage.registry import open_store
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace
from lance_nb.transactions.deletion_files import read_deletion_file
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.transaction import Transaction
from tests.support.replay import load_history, load_newest, transaction_of

State = tuple[Any, ...]
BASE_VERSION = 4  # written twice, rows deleted, column e added


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"a": list(ids), "b": [f"s{i}" for i in ids], "c": [i * 1.5 for i in ids]})


# --- the changes ----------------------------------------------------------------------------------


def _append(ds: Any) -> None:
    import lance

    table = rows(100, 4)
    lance.write_dataset(table.append_column("e", table["a"]), ds, mode="append")


def _overwrite(ds: Any) -> None:
    import lance

    lance.write_dataset(rows(200, 5), ds, mode="overwrite")


def _update_columns(ds: Any) -> None:
    values = pa.table({"a": [1, 2], "b": ["one", "two"]})
    ds.merge_insert("a").when_matched_update_all().conflict_retries(0).execute(values)


def _upsert(key: int) -> Callable[[Any], None]:
    def upsert(ds: Any) -> None:
        merge = ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        table = rows(key, 1)
        merge.conflict_retries(0).execute(table.append_column("e", table["a"]))

    return upsert


def _merge_unflagged(ds: Any) -> None:
    import lance

    def negative(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pc.negate(batch.column(0))], names=["m"])

    merged = [one.merge_columns(negative, columns=["a"]) for one in ds.get_fragments()]
    operation = lance.LanceOperation.Merge([one for one, _ in merged], merged[0][1])
    lance.LanceDataset.commit(ds, operation, read_version=ds.version, max_retries=0)


def _replace(fragment_id: int) -> Callable[[Any], None]:
    """Replace column e, which has a file of its own, by nulls."""

    def replace_data(ds: Any) -> None:
        import lance
        from lance.file import LanceFileWriter
        from lance.fragment import DataFile

        fragment = ds.get_fragment(fragment_id)
        if fragment is None:
            raise LookupError(f"fragment {fragment_id} is gone")
        (old,) = (one for one in fragment.metadata.files if len(one.fields) == 1)
        schema = pa.schema([ds.schema.field("e")])
        name = f"replaced-{uuid.uuid4()}.lance"
        with LanceFileWriter(f"{ds.uri}/data/{name}", schema, version="2.2") as writer:
            nulls = pa.nulls(fragment.physical_rows, schema.field(0).type)
            writer.write_batch(pa.record_batch([nulls], schema=schema))
        new = DataFile(name, old.fields, old.column_indices, 2, 2)
        group = lance.LanceOperation.DataReplacementGroup(fragment_id, new)
        operation = lance.LanceOperation.DataReplacement([group])
        lance.LanceDataset.commit(ds, operation, read_version=ds.version, max_retries=0)

    return replace_data


def _add_base(ds: Any) -> None:
    import lance

    ds.add_bases([lance.DatasetBasePath("/base", name="base")])


CHANGES: dict[str, Callable[[Any], object]] = {
    "append": _append,
    "delete row 1": lambda ds: ds.delete("a = 1", conflict_retries=0),
    "delete row 2": lambda ds: ds.delete("a = 2", conflict_retries=0),
    "delete row 11": lambda ds: ds.delete("a = 11", conflict_retries=0),
    "delete fragment 0": lambda ds: ds.delete("a < 10", conflict_retries=0),
    "overwrite": _overwrite,
    "index on a": lambda ds: ds.create_scalar_index("a", "BTREE", name="i"),
    "index on c": lambda ds: ds.create_scalar_index("c", "BTREE", name="k"),
    "index on e": lambda ds: ds.create_scalar_index("e", "BITMAP", name="j"),
    "compact": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=20),
    "add column": lambda ds: ds.add_columns({"d": "a * 2"}),
    "merge": _merge_unflagged,
    "drop c": lambda ds: ds.drop_columns(["c"]),
    "drop b": lambda ds: ds.drop_columns(["b"]),
    "drop e": lambda ds: ds.drop_columns(["e"]),
    "replace e of fragment 0": _replace(0),
    "replace e of fragment 1": _replace(1),
    "restore": lambda ds: ds.checkout_version(1).restore(),
    "update row 1": lambda ds: ds.update({"c": "-1"}, where="a = 1", conflict_retries=0),
    "update row 2": lambda ds: ds.update({"c": "-2"}, where="a = 2", conflict_retries=0),
    "update b of rows 1, 2": _update_columns,
    "upsert key 500": _upsert(500),
    "upsert key 600": _upsert(600),
    "config k": lambda ds: ds.update_config({"k": "mine"}),
    "table metadata": lambda ds: ds.update_metadata({"k": "v"}),
    "schema metadata": lambda ds: ds.update_schema_metadata({"k": "v"}),
    "metadata of c": lambda ds: ds.update_field_metadata({"c": {"k": "v"}}),
    "add base": _add_base,
}


@dataclass(frozen=True)
class Prepared:
    """A change as a transaction, and the files it wrote."""

    transaction: Transaction
    files: tuple[Path, ...]
    affected_rows: dict[int, DeletionVector] | None


class Pairs:
    """All pairs over one small dataset of three fragments."""

    def __init__(self, lance: Any, folder: Path, *, stable_row_ids: bool) -> None:
        self.lance = lance
        self.folder = folder
        self.stable_row_ids = stable_row_ids
        self.base = folder / "base"
        self._number = 0
        lance.write_dataset(
            rows(0, 20), self.base, max_rows_per_file=10, enable_stable_row_ids=stable_row_ids
        )
        lance.write_dataset(rows(20, 10), self.base, mode="append")
        lance.dataset(self.base).delete("a = 9 or a = 19")
        lance.dataset(self.base).add_columns({"e": "a * 3"})
        self.prepared = {name: self._prepare(name) for name in CHANGES}

    # --- preparing --------------------------------------------------------------------------------

    def copy(self) -> Path:
        self._number += 1
        target = self.folder / f"copy{self._number}"
        # Neither library changes a file that is there: links do.
        shutil.copytree(self.base, target, copy_function=os.link)
        return target

    def _prepare(self, name: str) -> Prepared:
        path = self.copy()
        before = set(path.rglob("*"))
        self.by_pylance(path, name)
        history = load_history(path)
        manifest, _ = history[max(history)]
        transaction = transaction_of(manifest)
        operation = transaction.operation
        if isinstance(operation, Rewrite):  # pylance reserved ids; ours get them when committed
            groups = tuple(
                replace(one, new_fragments=tuple(replace(f, id=0) for f in one.new_fragments))
                for one in operation.groups
            )
            operation = replace(operation, groups=groups)
        transaction = replace(transaction, read_version=BASE_VERSION, operation=operation)
        files = tuple(
            one
            for one in set(path.rglob("*")) - before
            if one.is_file()
            and one.relative_to(path).parts[0] not in ("_versions", "_transactions")
        )
        return Prepared(transaction, files, self._affected_rows(path, operation))

    def _affected_rows(self, path: Path, operation: Any) -> dict[int, DeletionVector] | None:
        if operation.arm not in ("delete", "update"):
            return None
        place = CommitPlace.of(open_store(str(path)))
        history = load_history(path)
        before = {one.id: one for one in history[BASE_VERSION][0].fragments}
        locations = place.locations(history[BASE_VERSION][0])

        def deleted(fragment: Fragment) -> set[int]:
            return set(read_deletion_file(locations, fragment).offsets().tolist())

        return {
            one.id: DeletionVector.of(deleted(one) - deleted(before[one.id]))
            for one in operation.updated_fragments
        }

    # --- committing -------------------------------------------------------------------------------

    def by_pylance(self, path: Path, name: str, ds: Any = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            CHANGES[name](ds or self.lance.dataset(path))

    def by_us(self, path: Path, name: str) -> None:
        change = self.prepared[name]
        for file in change.files:  # their names are unique
            root = next(one for one in file.parents if one.parent == self.folder)
            target = path / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        commit(
            CommitPlace.of(open_store(str(path))),
            replace(change.transaction, uuid=str(uuid.uuid4())),
            CommitOptions(affected_rows=change.affected_rows),
        )

    def stale_commit(self, path: Path, first: str, second: str, who: tuple[str, str]) -> None:
        """Commit two changes made for the same version; who: "ours" or "pylance" for each."""
        stale = self.lance.dataset(path)
        for name, by in zip((first, second), who, strict=True):
            if by == "ours":
                self.by_us(path, name)
            else:
                self.by_pylance(path, name, stale if name is second else None)

    # --- states -----------------------------------------------------------------------------------

    def state(self, path: Path) -> State:
        """Everything a user could see: rows in any order, columns, indices, settings."""
        ds = self.lance.dataset(path)
        ds.validate()
        table = ds.to_table()
        names = sorted(table.column_names)
        manifest, indices = load_newest(path)
        assert manifest.version == ds.version
        return (
            sorted(map(repr, table.select(names).to_pylist())),
            names,
            sorted({one.name for one in indices if not one.is_system}),
            dict(manifest.config),
            dict(manifest.table_metadata),
            dict(manifest.schema.metadata),
            {one.name: dict(one.metadata) for one in manifest.schema},
            sorted(one.path for one in manifest.base_paths),
        )

    @cache  # noqa: B019 (one object per test module)
    def serial(self, *names: str) -> State | None:
        """Return the state after these changes one after the other; None if one is refused."""
        path = self.copy()
        try:
            for name in names:
                self.by_pylance(path, name)
        except (OSError, ValueError, LookupError, RuntimeError):
            return None
        return self.state(path)
