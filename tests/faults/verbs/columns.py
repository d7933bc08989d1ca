"""Verbs that change the schema, its metadata, settings and indices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from tests.faults.verbs.verb import (
    Verb,
    add_checksums,
    branched,
    commit,
    indexed,
    opened,
    rows,
)

Operation = lance_nb.LanceOperation


def _twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"twice": pa.array([2 * value for value in batch["id"].to_pylist()])})


def _remembered_function(dataset: Any) -> None:
    schema = pa.schema([pa.field("twice", pa.int64())])
    function = lance_nb.batch_udf(schema, checkpoint_file=f"{dataset.uri}-checkpoint")(_twice)
    dataset.add_columns(function, read_columns=["id"])


def _add_twice(dataset: Any) -> None:
    dataset.add_columns({"twice": "id * 2"})


def _rename(dataset: Any) -> None:
    dataset.alter_columns({"path": "n", "name": "m"})


def _with_vectors(path: str) -> None:
    schema = pa.schema([pa.field("vector", pa.list_(pa.float32(), 2))])

    @lance_nb.batch_udf(schema)
    def vectors(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [[float(value or 0), 1.0] for value in batch["id"].to_pylist()]
        return pa.record_batch([pa.array(values, schema.field(0).type)], schema)

    opened(path).add_columns(vectors, read_columns=["id"])


def _indexed_before(path: str) -> None:
    indexed(path)
    opened(path).insert(rows(300))


def _index_of_segments(dataset: Any) -> None:
    segments = [
        dataset.create_index_uncommitted("id", "BTREE", fragment_ids=[fragment])
        for fragment in sorted(dataset.fragment_ids())[:2]
    ]
    merged = dataset.merge_existing_index_segments(segments)
    dataset.commit_existing_index_segments("id_idx", "id", [merged])


def _fragment_merge_columns(dataset: Any) -> None:
    merged = [fragment.merge_columns({"twice": "id * 2"}) for fragment in dataset.get_fragments()]
    commit(dataset, Operation.Merge([fragment for fragment, _ in merged], merged[0][1]))


def _fragment_merge(dataset: Any) -> None:
    labels = pa.table({"id": [1, 2], "label": ["a", "b"]})
    merged = [fragment.merge(labels, "id") for fragment in dataset.get_fragments()]
    commit(dataset, Operation.Merge([fragment for fragment, _ in merged], merged[0][1]))


def _add_nulls(dataset: Any) -> None:
    dataset.add_columns(pa.field("more", pa.int64()))


def _replacement(dataset: Any) -> None:
    """Give the column "more" of one fragment a file of its own."""
    fragment = dataset.get_fragments()[0]
    values = pa.table({"id": [1, 2], "more": pa.array([10, 20], pa.int64())})
    changed, _ = fragment.update_columns(values, left_on="id")
    groups = [Operation.DataReplacementGroup(fragment.fragment_id, changed.files[-1])]
    commit(dataset, Operation.DataReplacement(groups))


def _project(dataset: Any) -> None:
    staged = dataset.stage().drop_columns(["n"]).staged
    commit(dataset, Operation.Project(staged.operation.schema))


def _base(dataset: Any) -> None:
    path = f"{Path(dataset.uri).parent}/base"
    if not any(base.name == "more" for base in dataset.base_paths().values()):
        dataset.add_bases([lance_nb.DatasetBasePath(path, "more")])


COLUMNS_VERBS: dict[str, Verb] = {
    "add_columns": Verb(_add_twice),
    "add_columns of nulls": Verb(_add_nulls),
    "add_columns by a function": Verb(lambda ds: ds.add_columns(_twice, read_columns=["id"])),
    "add_columns with a checkpoint": Verb(_remembered_function),
    "add_columns on a branch": Verb(_add_twice, branched, on="dev"),
    "add_columns with checksums": Verb(_add_twice, add_checksums),
    "alter_columns, rename": Verb(_rename),
    "alter_columns, cast": Verb(
        lambda ds: ds.alter_columns({"path": "n", "data_type": pa.int32()})
    ),
    "drop_columns": Verb(lambda ds: ds.drop_columns(["n"])),
    "merge": Verb(lambda ds: ds.merge(pa.table({"id": [1, 2], "label": ["a", "b"]}), "id")),
    "fragment.merge": Verb(_fragment_merge),
    "fragment.merge_columns": Verb(_fragment_merge_columns),
    "commit of a data replacement": Verb(_replacement, lambda path: _add_nulls(opened(path))),
    "commit of a projection": Verb(_project),
    "commit of reserved fragments": Verb(lambda ds: commit(ds, Operation.ReserveFragments(3))),
    "staged add_columns": Verb(lambda ds: ds.stage().add_columns({"twice": "id * 2"}).commit()),
    "staged alter_columns": Verb(
        lambda ds: ds.stage().alter_columns({"path": "n", "name": "m"}).commit()
    ),
    "staged drop_columns": Verb(lambda ds: ds.stage().drop_columns(["n"]).commit()),
    "create_scalar_index": Verb(indexed, on=None),
    "replace an index": Verb(
        lambda ds: ds.create_scalar_index("id", "BTREE", replace=True), _indexed_before
    ),
    "index of segments": Verb(_index_of_segments),
    "create_index": Verb(
        lambda ds: ds.create_index("vector", "IVF_FLAT", num_partitions=1), _with_vectors
    ),
    "optimize_indices": Verb(lambda ds: ds.optimize.optimize_indices(), _indexed_before),
    "drop_index": Verb(lambda ds: ds.drop_index("id_idx"), indexed),
    "update_config": Verb(lambda ds: ds.update_config({"key": "new"})),
    "delete_config_keys": Verb(
        lambda ds: ds.delete_config_keys(["key"]),
        lambda path: opened(path).update_config({"key": "old"}),
    ),
    "update_metadata": Verb(lambda ds: ds.update_metadata({"key": "new"})),
    "update_metadata, replaced": Verb(
        lambda ds: ds.update_metadata({"key": "new"}, replace=True),
        lambda path: opened(path).update_metadata({"other": "old"}),
    ),
    "update_schema_metadata": Verb(lambda ds: ds.update_schema_metadata({"key": "new"})),
    "replace_schema_metadata": Verb(lambda ds: ds.replace_schema_metadata({"key": "new"})),
    "update_field_metadata": Verb(lambda ds: ds.update_field_metadata({"n": {"key": "new"}})),
    "replace_field_metadata": Verb(lambda ds: ds.replace_field_metadata("n", {"key": "new"})),
    "add_bases": Verb(_base),
}  # fmt: skip
