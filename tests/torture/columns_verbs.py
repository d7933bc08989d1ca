"""Verbs that change the schema, its metadata, settings and indices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from tests.torture.verb import Verb, add_checksums, branch, branched, indexed, opened, rows


def _configured(place: str) -> None:
    opened(place).update_config({"key": "old"})


def _twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"twice": pa.array([2 * one for one in batch["id"].to_pylist()])})


def _remembered_function(place: str) -> None:
    schema = pa.schema([pa.field("twice", pa.int64())])
    function = lance_nb.batch_udf(schema, checkpoint_file=f"{place}-checkpoint")(_twice)
    opened(place).add_columns(function, read_columns=["id"])


def _with_vectors(place: str) -> None:
    schema = pa.schema([pa.field("vector", pa.list_(pa.float32(), 2))])

    @lance_nb.batch_udf(schema)
    def vectors(batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = [float(one or 0) for one in batch["id"].to_pylist()]
        return pa.record_batch(
            [pa.array([[n, 1.0] for n in numbers], schema.field(0).type)], schema
        )

    opened(place).add_columns(vectors, read_columns=["id"])


def _index_of_segments(place: str) -> None:
    dataset = opened(place)
    parts = [
        dataset.create_index_uncommitted("id", "BTREE", fragment_ids=[one])
        for one in sorted(dataset.fragment_ids())[:2]
    ]
    merged = dataset.merge_existing_index_segments(parts)
    dataset.commit_existing_index_segments("id_idx", "id", [merged])


def _commit(place: str, operation: Any) -> None:
    dataset = opened(place)
    lance_nb.LanceDataset.commit(dataset, operation, dataset.version)


def _fragment_merge_columns(place: str) -> None:
    made = [one.merge_columns({"twice": "id * 2"}) for one in opened(place).get_fragments()]
    _commit(place, lance_nb.LanceOperation.Merge([one for one, _ in made], made[0][1]))


def _fragment_merge(place: str) -> None:
    labels = pa.table({"id": [1, 2], "label": ["a", "b"]})
    made = [one.merge(labels, "id") for one in opened(place).get_fragments()]
    _commit(place, lance_nb.LanceOperation.Merge([one for one, _ in made], made[0][1]))


def _nulls(place: str) -> None:
    opened(place).add_columns(pa.field("more", pa.int64()))


def _replacement(place: str) -> None:
    """Give the column "more" of one fragment a file of its own."""
    dataset = opened(place)
    fragment = dataset.get_fragments()[0]
    values = pa.table({"id": [1, 2], "more": pa.array([10, 20], pa.int64())})
    changed, _ = fragment.update_columns(values, left_on="id")
    groups = [lance_nb.LanceOperation.DataReplacementGroup(fragment.fragment_id, changed.files[-1])]
    _commit(place, lance_nb.LanceOperation.DataReplacement(groups))


def _project(place: str) -> None:
    staged = opened(place).stage().drop_columns(["n"]).staged
    _commit(place, lance_nb.LanceOperation.Project(staged.operation.schema))


def _base(place: str) -> None:
    path = f"{Path(place).parent}/base"
    if not any(one.name == "more" for one in opened(place).base_paths().values()):
        opened(place).add_bases([lance_nb.DatasetBasePath(path, "more")])


def _stage(place: str) -> Any:
    return opened(place).stage()


COLUMNS_VERBS: dict[str, Verb] = {
    "add_columns": Verb(lambda place: opened(place).add_columns({"twice": "id * 2"})),
    "add_columns of nulls": Verb(_nulls),
    "add_columns by a function": Verb(
        lambda place: opened(place).add_columns(_twice, read_columns=["id"])
    ),
    "add_columns with a checkpoint": Verb(_remembered_function),
    "add_columns on a branch": Verb(
        lambda place: branch(place).add_columns({"twice": "id * 2"}), branched
    ),
    "add_columns with checksums": Verb(
        lambda place: opened(place).add_columns({"twice": "id * 2"}), add_checksums
    ),
    "alter_columns, rename": Verb(
        lambda place: opened(place).alter_columns({"path": "n", "name": "m"})
    ),
    "alter_columns, cast": Verb(
        lambda place: opened(place).alter_columns({"path": "n", "data_type": pa.int32()})
    ),
    "drop_columns": Verb(lambda place: opened(place).drop_columns(["n"])),
    "merge": Verb(
        lambda place: opened(place).merge(pa.table({"id": [1, 2], "label": ["a", "b"]}), "id")
    ),
    "fragment.merge": Verb(_fragment_merge),
    "fragment.merge_columns": Verb(_fragment_merge_columns),
    "commit of a data replacement": Verb(_replacement, _nulls),
    "commit of a projection": Verb(_project),
    "commit of reserved fragments": Verb(
        lambda place: _commit(place, lance_nb.LanceOperation.ReserveFragments(3))
    ),
    "staged add_columns": Verb(
        lambda place: _stage(place).add_columns({"twice": "id * 2"}).commit()
    ),
    "staged alter_columns": Verb(
        lambda place: _stage(place).alter_columns({"path": "n", "name": "m"}).commit()
    ),
    "staged drop_columns": Verb(lambda place: _stage(place).drop_columns(["n"]).commit()),
    "create_scalar_index": Verb(indexed),
    "replace an index": Verb(
        lambda place: opened(place).create_scalar_index("id", "BTREE", replace=True),
        lambda place: (indexed(place), opened(place).insert(rows(300))),
    ),
    "index of segments": Verb(_index_of_segments),
    "create_index": Verb(
        lambda place: opened(place).create_index("vector", "IVF_FLAT", num_partitions=1),
        _with_vectors,
    ),
    "optimize_indices": Verb(
        lambda place: opened(place).optimize.optimize_indices(),
        lambda place: (indexed(place), opened(place).insert(rows(300))),
    ),
    "drop_index": Verb(lambda place: opened(place).drop_index("id_idx"), indexed),
    "update_config": Verb(lambda place: opened(place).update_config({"key": "new"})),
    "delete_config_keys": Verb(
        lambda place: opened(place).delete_config_keys(["key"]), _configured
    ),
    "update_metadata": Verb(lambda place: opened(place).update_metadata({"key": "new"})),
    "update_metadata, replaced": Verb(
        lambda place: opened(place).update_metadata({"key": "new"}, replace=True),
        lambda place: opened(place).update_metadata({"other": "old"}),
    ),
    "update_schema_metadata": Verb(
        lambda place: opened(place).update_schema_metadata({"key": "new"})
    ),
    "replace_schema_metadata": Verb(
        lambda place: opened(place).replace_schema_metadata({"key": "new"})
    ),
    "update_field_metadata": Verb(
        lambda place: opened(place).update_field_metadata({"n": {"key": "new"}})
    ),
    "replace_field_metadata": Verb(
        lambda place: opened(place).replace_field_metadata("n", {"key": "new"})
    ),
    "add_bases": Verb(_base),
}
