"""Verbs that change rows: they are written, deleted, updated and merged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.errors import CommitConflictError
from lance_nb.spark.plan import Label
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.transactions.stream_mark import StreamMark
from tests.faults.verbs.verb import (
    OPTIONS,
    Verb,
    add_checksums,
    blobs,
    branched,
    clean_up_by_itself,
    commit,
    first_blobs,
    indexed,
    rows,
    stable,
    with_blobs,
    with_first_blobs,
)

Operation = lance_nb.LanceOperation


def _append(dataset: Any) -> None:
    dataset.insert(rows(100))


def _append_three_files(dataset: Any) -> None:
    lance_nb.write_dataset(
        rows(100), dataset.uri, mode="append", max_rows_per_file=4, storage_options=OPTIONS
    )


def _create_with_base(path: str) -> None:
    base = lance_nb.DatasetBasePath(f"{Path(path).parent}/base", "more")
    lance_nb.write_dataset(rows(0), f"{path}-new", initial_bases=[base], target_bases=["more"])


def _overwrite(dataset: Any) -> None:
    dataset.insert(rows(100), mode="overwrite")


def _delete(dataset: Any) -> None:
    dataset.delete("id % 3 = 0")


def _update(dataset: Any) -> None:
    dataset.update({"n": "id + 100"}, where="id < 5")


def _edit(dataset: Any) -> None:
    ids = dataset.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    dataset.edit({ids[0]: {"n": 100}, ids[30]: {"n": 101}}, add=rows(100), delete=ids[3:5])


def _edit_in_a_stage(dataset: Any) -> None:
    ids = dataset.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    dataset.stage().edit({ids[1]: {"n": 102}}, delete=ids[6:7]).commit()


def _upserting(dataset: Any) -> Any:
    return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


def _upsert(dataset: Any) -> None:
    _upserting(dataset).execute(rows(25, 20))


def _updating(dataset: Any, condition: str | None = None) -> Any:
    return dataset.merge_insert("id").when_matched_update_all(condition)


def _upsert_in_two_steps(dataset: Any) -> None:
    transaction, _ = _upserting(dataset).execute_uncommitted(rows(25, 20))
    lance_nb.LanceDataset.commit(dataset, transaction)


def _upsert_of_batches_in_two_steps(dataset: Any) -> None:
    batches = rows(25, 20).to_batches()
    transaction, _ = _updating(dataset).execute_uncommitted_batches(batches)
    lance_nb.LanceDataset.commit(dataset, transaction)


def _appending(dataset: Any) -> Any:
    return Operation.Append(lance_nb.write_fragments(rows(100), dataset))


def _commit_of_overwrite(dataset: Any) -> None:
    fragments = lance_nb.write_fragments(rows(100), dataset, mode="overwrite")
    commit(dataset, Operation.Overwrite(dataset.schema, fragments))


def _commit_of_batch(dataset: Any) -> None:
    transactions = [
        lance_nb.write_fragments(rows(first), dataset, return_transaction=True)
        for first in (100, 200)
    ]
    lance_nb.LanceDataset.commit_batch(dataset, transactions)


def _file_adopted(dataset: Any) -> None:
    name = f"written-{dataset.version}.lance"
    file = Path(dataset.uri, "data", name)
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)  # the file of a writer that died
    with lance_nb.LanceFileWriter(
        str(file), dataset.schema, version=dataset.data_storage_version
    ) as writer:
        writer.write_batch(rows(100))
    commit(dataset, Operation.Append([lance_nb.LanceFragment.create_from_file(name, dataset, 0)]))


def _fragment_update(dataset: Any) -> None:
    changed, fields = dataset.get_fragments()[0].update_columns(
        pa.table({"id": [1, 2], "n": [100, 200]}), left_on="id"
    )
    commit(dataset, Operation.Update(updated_fragments=(changed,), fields_modified=tuple(fields)))


def _stream(dataset: Any) -> None:
    planned = RowWriter.of(dataset, rows(0).schema, WriteSettings("append"))
    addition = planned.write(rows(100))
    label = Label(mark=StreamMark("stream", 3))
    with suppress(CommitConflictError):  # the batch is there already
        planned.plan("stream", "batch 3").commit([addition], label)


def _joined_stages(dataset: Any) -> None:
    first = dataset.stage().append(rows(800))
    first.joined(dataset.stage().append(rows(900))).commit()


def _on_blobs(act: Any) -> Verb:
    return Verb(act, with_blobs, on="-blobs", at="-blobs")


ROWS_VERBS: dict[str, Verb] = {
    "create": Verb(
        lambda path: lance_nb.write_dataset(rows(0), f"{path}-new", storage_options=OPTIONS),
        on=None, at="-new",
    ),
    "create with checksums": Verb(
        lambda path: lance_nb.write_dataset(rows(0), f"{path}-new", checksums=True),
        on=None, at="-new",
    ),
    "create in another base": Verb(_create_with_base, on=None, at="-new"),
    "append": Verb(_append),
    "append of three files": Verb(_append_three_files),
    "append to a branch": Verb(_append, branched, on="dev"),
    "append to an indexed dataset": Verb(_append, indexed),
    "append with checksums": Verb(_append, add_checksums),
    "append that cleans up": Verb(_append, clean_up_by_itself, between=("cleaned",)),
    "append of blobs": _on_blobs(lambda ds: ds.insert(blobs(50))),
    "append of first blobs": Verb(
        lambda ds: ds.insert(first_blobs(50)), with_first_blobs, on="-blobs", at="-blobs"
    ),
    "append of a stale writer": Verb(lambda ds: commit(ds.checkout_version(1), _appending(ds))),
    "overwrite": Verb(_overwrite),
    "overwrite with another schema": Verb(
        lambda ds: ds.insert(pa.table({"id": [1, 2]}), mode="overwrite")
    ),
    "overwrite on a branch": Verb(
        lambda ds: ds.insert(rows(1), mode="overwrite"), branched, on="dev"
    ),
    "overwrite with checksums": Verb(_overwrite, add_checksums),
    "overwrite of blobs": _on_blobs(lambda ds: ds.insert(blobs(50), mode="overwrite")),
    "truncate": Verb(lambda ds: ds.truncate_table()),
    "delete": Verb(_delete),
    "delete of a fragment": Verb(lambda ds: ds.delete("id >= 50")),
    "delete on a branch": Verb(lambda ds: ds.delete("id < 9"), branched, on="dev"),
    "delete in an indexed dataset": Verb(_delete, indexed),
    "delete with checksums": Verb(_delete, add_checksums),
    "delete of blobs": _on_blobs(lambda ds: ds.delete("id < 2")),
    "delete of a stale writer": Verb(lambda ds: ds.checkout_version(2).delete("id = 7")),
    "update": Verb(lambda ds: ds.update({"n": "n + 100"}, where="id < 5")),
    "edit of cells": Verb(_edit),
    "edit of cells in a stage": Verb(_edit_in_a_stage),
    "update of columns": Verb(
        lambda ds: ds.update({"n": "id + 100"}, where="id < 5", mode="columns")
    ),
    "update on a branch": Verb(_update, branched, on="dev"),
    "update with stable row ids": Verb(_update, stable, on="-stable", at="-stable"),
    "update of blobs": _on_blobs(lambda ds: ds.update({"id": "id + 100"}, where="id < 2")),
    "merge_insert, upsert": Verb(_upsert),
    "merge_insert, missing rows": Verb(
        lambda ds: ds.merge_insert("id").when_not_matched_insert_all().execute(rows(25, 20))
    ),
    "merge_insert, delete by source": Verb(
        lambda ds: _updating(ds).when_not_matched_by_source_delete("id < 5").execute(rows(5, 5))
    ),
    "merge_insert, delete matched": Verb(
        lambda ds: ds.merge_insert("id").when_matched_delete().execute(rows(5, 5))
    ),
    "merge_insert, conditional": Verb(
        lambda ds: _updating(ds, "source.id > 27").execute(
            rows(25, 20).set_column(1, "n", pa.array(range(100, 120), pa.int64()))
        )
    ),
    "merge_insert, rewritten columns": Verb(
        lambda ds: (
            _updating(ds).write_mode("rewrite_columns").execute(rows(5, 5).select(["id", "n"]))
        )
    ),
    "merge_insert, batches": Verb(
        lambda ds: _upserting(ds).execute_batches(rows(25, 20).to_batches())
    ),
    "merge_insert, committed apart": Verb(_upsert_in_two_steps),
    "merge_insert, batches committed apart": Verb(_upsert_of_batches_in_two_steps),
    "merge_insert in an indexed dataset": Verb(_upsert, indexed),
    "merge_insert with checksums": Verb(_upsert, add_checksums),
    "merge_insert with stable row ids": Verb(_upsert, stable, on="-stable", at="-stable"),
    "merge_insert of blobs": _on_blobs(
        lambda ds: ds.merge_insert("id").when_not_matched_insert_all().execute(blobs(2))
    ),
    "commit of fragments": Verb(lambda ds: commit(ds, _appending(ds))),
    "commit of an overwrite": Verb(_commit_of_overwrite),
    "commit_batch": Verb(_commit_of_batch),
    "detached commit": Verb(lambda ds: commit(ds, _appending(ds), detached=True)),
    "fragment.create": Verb(
        lambda ds: commit(ds, Operation.Append([lance_nb.LanceFragment.create(ds.uri, rows(100))]))
    ),
    "fragment.create_from_file": Verb(_file_adopted),
    "fragment.delete": Verb(
        lambda ds: commit(
            ds, Operation.Delete([ds.get_fragments()[0].delete("id < 2")], [], "id < 2")
        )
    ),
    "fragment.delete_rows": Verb(
        lambda ds: commit(
            ds, Operation.Delete([ds.get_fragments()[0].delete_rows([0, 5])], [], "id in (0, 5)")
        )
    ),
    "fragment.update_columns": Verb(_fragment_update),
    "write_fragments": Verb(lambda ds: lance_nb.write_fragments(rows(100), ds), commits=False),
    "batch of a stream": Verb(_stream),
    "staged batch": Verb(lambda ds: ds.stage().append(rows(800)).delete("id < 4").commit()),
    "staged update": Verb(lambda ds: ds.stage().update({"n": "id"}, "id < 5").commit()),
    "staged upsert": Verb(lambda ds: ds.stage().upsert(rows(25, 20), "id").commit()),
    "staged merge_insert": Verb(
        lambda ds: (
            ds.stage().merge_insert("id").when_matched_update_all().stage(rows(5, 5)).commit()
        )
    ),
    "staged overwrite": Verb(lambda ds: ds.stage().overwrite(rows(100)).commit()),
    "joined stages": Verb(_joined_stages),
    "discarded stage": Verb(lambda ds: ds.stage().append(rows(800)).discard(), commits=False),
}  # fmt: skip
