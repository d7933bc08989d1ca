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
from tests.torture.verb import (
    OPTIONS,
    Verb,
    add_checksums,
    blobs,
    branch,
    branched,
    clean_up_by_itself,
    first_blobs,
    indexed,
    opened,
    rows,
    stable,
    with_blobs,
    with_first_blobs,
)


def _append(place: str) -> None:
    opened(place).insert(rows(100))


def _upsert(place: str) -> None:
    builder = (
        opened(place).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    )
    builder.execute(rows(25, 20))


def _updates(place: str, condition: str | None = None) -> Any:
    return opened(place).merge_insert("id").when_matched_update_all(condition)


def _edit(place: str) -> None:
    dataset = opened(place)
    ids = dataset.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    dataset.edit({ids[0]: {"n": 100}, ids[30]: {"n": 101}}, add=rows(100), delete=ids[3:5])


def _edit_in_a_stage(place: str) -> None:
    dataset = opened(place)
    ids = dataset.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    dataset.stage().edit({ids[1]: {"n": 102}}, delete=ids[6:7]).commit()


def _insert_missing(place: str) -> None:
    opened(place).merge_insert("id").when_not_matched_insert_all().execute(rows(25, 20))


def _replace_by_source(place: str) -> None:
    _updates(place).when_not_matched_by_source_delete("id < 5").execute(rows(5, 5))


def _delete_matched(place: str) -> None:
    opened(place).merge_insert("id").when_matched_delete().execute(rows(5, 5))


def _rewrite_columns(place: str) -> None:
    _updates(place).write_mode("rewrite_columns").execute(rows(5, 5).select(["id", "n"]))


def _upsert_in_two_steps(place: str) -> None:
    dataset = opened(place)
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    made, _ = builder.execute_uncommitted(rows(25, 20))
    lance_nb.LanceDataset.commit(dataset, made)


def _upsert_of_batches(place: str) -> None:
    builder = (
        opened(place).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    )
    builder.execute_batches(rows(25, 20).to_batches())


def _upsert_of_batches_in_two_steps(place: str) -> None:
    dataset = opened(place)
    builder = dataset.merge_insert("id").when_matched_update_all()
    made, _ = builder.execute_uncommitted_batches(rows(25, 20).to_batches())
    lance_nb.LanceDataset.commit(dataset, made)


def _commit_of_fragments(place: str) -> None:
    dataset = opened(place)
    fragments = lance_nb.write_fragments(rows(100), dataset)
    append = lance_nb.LanceOperation.Append(fragments)
    lance_nb.LanceDataset.commit(dataset, append, dataset.version)


def _commit_of_overwrite(place: str) -> None:
    dataset = opened(place)
    fragments = lance_nb.write_fragments(rows(100), dataset, mode="overwrite")
    operation = lance_nb.LanceOperation.Overwrite(dataset.schema, fragments)
    lance_nb.LanceDataset.commit(dataset, operation, dataset.version)


def _commit_of_batch(place: str) -> None:
    dataset = opened(place)
    made = [
        lance_nb.write_fragments(rows(first), dataset, return_transaction=True)
        for first in (100, 200)
    ]
    lance_nb.LanceDataset.commit_batch(dataset, made)


def _detached_commit(place: str) -> None:
    dataset = opened(place)
    fragments = lance_nb.write_fragments(rows(100), dataset)
    append = lance_nb.LanceOperation.Append(fragments)
    lance_nb.LanceDataset.commit(dataset, append, dataset.version, detached=True)


def _fragment_create(place: str) -> None:
    dataset = opened(place)
    fragment = lance_nb.LanceFragment.create(place, rows(100))
    append = lance_nb.LanceOperation.Append([fragment])
    lance_nb.LanceDataset.commit(dataset, append, dataset.version)


def _file_adopted(place: str) -> None:
    dataset = opened(place)
    version = dataset.data_storage_version
    Path(f"{place}/data").mkdir(exist_ok=True)
    name = f"written-{dataset.version}.lance"
    Path(f"{place}/data/{name}").unlink(missing_ok=True)  # the file of a writer that died
    with lance_nb.LanceFileWriter(
        f"{place}/data/{name}", dataset.schema, version=version
    ) as writer:
        writer.write_batch(rows(100))
    fragment = lance_nb.LanceFragment.create_from_file(name, dataset, 0)
    append = lance_nb.LanceOperation.Append([fragment])
    lance_nb.LanceDataset.commit(dataset, append, dataset.version)


def _fragment_delete(place: str) -> None:
    dataset = opened(place)
    fragment = dataset.get_fragments()[0].delete("id < 2")
    operation = lance_nb.LanceOperation.Delete([fragment], [], "id < 2")
    lance_nb.LanceDataset.commit(dataset, operation, dataset.version)


def _fragment_delete_rows(place: str) -> None:
    dataset = opened(place)
    fragment = dataset.get_fragments()[0].delete_rows([0, 5])
    operation = lance_nb.LanceOperation.Delete([fragment], [], "id in (0, 5)")
    lance_nb.LanceDataset.commit(dataset, operation, dataset.version)


def _fragment_update(place: str) -> None:
    dataset = opened(place)
    changed, fields = dataset.get_fragments()[0].update_columns(
        pa.table({"id": [1, 2], "n": [100, 200]}), left_on="id"
    )
    operation = lance_nb.LanceOperation.Update(
        updated_fragments=(changed,), fields_modified=tuple(fields)
    )
    lance_nb.LanceDataset.commit(dataset, operation, dataset.version)


def _stream(place: str) -> None:
    dataset = opened(place)
    planned = RowWriter.of(dataset, rows(0).schema, WriteSettings("append"))
    addition = planned.write(rows(100))
    label = Label(mark=StreamMark("stream", 3))
    with suppress(CommitConflictError):  # the batch is there already
        planned.plan("stream", "batch 3").commit([addition], label)


def _create_with_base(place: str) -> None:
    base = lance_nb.DatasetBasePath(f"{Path(place).parent}/base", "more")
    lance_nb.write_dataset(
        rows(0), f"{place}-new", initial_bases=[base], target_bases=["more"]
    )  # fmt: skip


def _stage(place: str) -> Any:
    return opened(place).stage()


def _staged_merge(place: str) -> None:
    merging = _stage(place).merge_insert("id").when_matched_update_all()
    merging.stage(rows(5, 5)).commit()


def _joined_stages(place: str) -> None:
    dataset = opened(place)
    first = dataset.stage().append(rows(800))
    first.joined(dataset.stage().append(rows(900))).commit()


def _uncommitted(place: str) -> None:
    lance_nb.write_fragments(rows(100), opened(place))


def _blobs(place: str) -> Any:
    return opened(f"{place}-blobs")


def _create(place: str) -> None:
    lance_nb.write_dataset(rows(0), f"{place}-new", storage_options=OPTIONS)


def _append_three_files(place: str) -> None:
    lance_nb.write_dataset(
        rows(100), place, mode="append", max_rows_per_file=4, storage_options=OPTIONS
    )


ROWS_VERBS: dict[str, Verb] = {
    "create": Verb(_create, at="-new"),
    "create with checksums": Verb(
        lambda place: lance_nb.write_dataset(rows(0), f"{place}-new", checksums=True), at="-new"
    ),
    "create in another base": Verb(_create_with_base, at="-new"),
    "append": Verb(_append),
    "append of three files": Verb(_append_three_files),
    "append to a branch": Verb(lambda place: branch(place).insert(rows(100)), branched),
    "append to an indexed dataset": Verb(_append, indexed),
    "append with checksums": Verb(_append, add_checksums),
    "append that cleans up": Verb(_append, clean_up_by_itself, between=("cleaned",)),
    "append of blobs": Verb(lambda place: _blobs(place).insert(blobs(50)), with_blobs, at="-blobs"),
    "append of first blobs": Verb(
        lambda place: _blobs(place).insert(first_blobs(50)), with_first_blobs, at="-blobs"
    ),
    "overwrite": Verb(lambda place: opened(place).insert(rows(100), mode="overwrite")),
    "overwrite with another schema": Verb(
        lambda place: opened(place).insert(pa.table({"id": [1, 2]}), mode="overwrite")
    ),
    "overwrite on a branch": Verb(
        lambda place: branch(place).insert(rows(1), mode="overwrite"), branched
    ),
    "overwrite with checksums": Verb(
        lambda place: opened(place).insert(rows(100), mode="overwrite"), add_checksums
    ),
    "overwrite of blobs": Verb(
        lambda place: _blobs(place).insert(blobs(50), mode="overwrite"), with_blobs, at="-blobs"
    ),
    "truncate": Verb(lambda place: opened(place).truncate_table()),
    "delete": Verb(lambda place: opened(place).delete("id % 3 = 0")),
    "delete of a fragment": Verb(lambda place: opened(place).delete("id >= 50")),
    "delete on a branch": Verb(lambda place: branch(place).delete("id < 9"), branched),
    "delete in an indexed dataset": Verb(lambda place: opened(place).delete("id % 3 = 0"), indexed),
    "delete with checksums": Verb(lambda place: opened(place).delete("id % 3 = 0"), add_checksums),
    "delete of blobs": Verb(lambda place: _blobs(place).delete("id < 2"), with_blobs, at="-blobs"),
    "update": Verb(lambda place: opened(place).update({"n": "n + 100"}, where="id < 5")),
    "edit of cells": Verb(_edit),
    "edit of cells in a stage": Verb(_edit_in_a_stage),
    "update of columns": Verb(
        lambda place: opened(place).update({"n": "id + 100"}, where="id < 5", mode="columns")
    ),
    "update on a branch": Verb(
        lambda place: branch(place).update({"n": "id + 100"}, where="id < 5"), branched
    ),
    "update with stable row ids": Verb(
        lambda place: opened(f"{place}-stable").update({"n": "id + 100"}, where="id < 5"),
        stable,
        at="-stable",
    ),
    "update of blobs": Verb(
        lambda place: _blobs(place).update({"id": "id + 100"}, where="id < 2"),
        with_blobs,
        at="-blobs",
    ),
    "merge_insert, upsert": Verb(_upsert),
    "merge_insert, missing rows": Verb(_insert_missing),
    "merge_insert, delete by source": Verb(_replace_by_source),
    "merge_insert, delete matched": Verb(_delete_matched),
    "merge_insert, conditional": Verb(
        lambda place: _updates(place, "source.id > 27").execute(
            rows(25, 20).set_column(1, "n", pa.array(range(100, 120), pa.int64()))
        )
    ),
    "merge_insert, rewritten columns": Verb(_rewrite_columns),
    "merge_insert, batches": Verb(_upsert_of_batches),
    "merge_insert, committed apart": Verb(_upsert_in_two_steps),
    "merge_insert, batches committed apart": Verb(_upsert_of_batches_in_two_steps),
    "merge_insert in an indexed dataset": Verb(_upsert, indexed),
    "merge_insert with checksums": Verb(_upsert, add_checksums),
    "merge_insert with stable row ids": Verb(
        lambda place: _upsert(f"{place}-stable"), stable, at="-stable"
    ),
    "merge_insert of blobs": Verb(
        lambda place: (
            _blobs(place).merge_insert("id").when_not_matched_insert_all().execute(blobs(2))
        ),
        with_blobs,
        at="-blobs",
    ),
    "commit of fragments": Verb(_commit_of_fragments),
    "commit of an overwrite": Verb(_commit_of_overwrite),
    "commit_batch": Verb(_commit_of_batch),
    "detached commit": Verb(_detached_commit),
    "fragment.create": Verb(_fragment_create),
    "fragment.create_from_file": Verb(_file_adopted),
    "fragment.delete": Verb(_fragment_delete),
    "fragment.delete_rows": Verb(_fragment_delete_rows),
    "fragment.update_columns": Verb(_fragment_update),
    "write_fragments": Verb(_uncommitted, commits=False),
    "batch of a stream": Verb(_stream),
    "staged batch": Verb(lambda place: _stage(place).append(rows(800)).delete("id < 4").commit()),
    "staged update": Verb(lambda place: _stage(place).update({"n": "id"}, "id < 5").commit()),
    "staged upsert": Verb(lambda place: _stage(place).upsert(rows(25, 20), "id").commit()),
    "staged merge_insert": Verb(_staged_merge),
    "staged overwrite": Verb(lambda place: _stage(place).overwrite(rows(100)).commit()),
    "joined stages": Verb(_joined_stages),
    "discarded stage": Verb(lambda place: _stage(place).append(rows(800)).discard(), commits=False),
}
