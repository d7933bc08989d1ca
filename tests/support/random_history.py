"""Long random histories by pylance: every operation that its verbs can reach, in any order."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

REFUSALS = (
    OSError,
    ValueError,
    TypeError,
    NotImplementedError,
    LookupError,
    RuntimeError,
    StopIteration,
)


class RandomHistory:
    """One dataset that changes step by step; ``steps`` is what happened."""

    def __init__(self, folder: Path, seed: int, *, stable_row_ids: bool) -> None:
        import lance

        self.lance = lance
        self.path = str(folder / "dataset")
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.rows = 0
        self.step = 0
        self.steps: list[str] = []
        lance.write_dataset(
            self.table(300), self.path, max_rows_per_file=70, enable_stable_row_ids=stable_row_ids
        )

    def run(self, steps: int) -> None:
        verbs = [name for name in dir(self) if name.startswith("do_")]
        for _ in range(steps):
            self.step += 1
            verb = self.random.choice(verbs)
            if verb == "do_overwrite" and self.random.random() < 0.6:
                verb = "do_append"
            call: Callable[[object], object] = getattr(self, verb)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(self.lance.dataset(self.path))
            except REFUSALS:  # the column is gone, nothing to compact, ...
                verb = f"{verb}, refused"
            self.steps.append(verb)

    def table(self, num_rows: int) -> pa.Table:
        first, self.rows = self.rows, self.rows + num_rows
        ids = range(num_rows)
        vectors = pa.array(self.numbers.random(num_rows * 4).astype("f4"))
        struct = pa.struct([("x", pa.int64()), ("y", pa.string())])
        return pa.table(
            {
                "a": pa.array(range(first, first + num_rows)),
                "b": [f"s{i % 7}" for i in ids],
                "c": pa.array(self.numbers.random(num_rows)),
                "st": pa.array([{"x": i, "y": str(i)} for i in ids], struct),
                "v": pa.FixedSizeListArray.from_arrays(vectors, 4),
                "li": pa.array([[i] for i in ids]),
            }
        )

    # --- rows -------------------------------------------------------------------------------------

    def do_append(self, ds: object) -> None:
        rows = self.table(self.random.randint(5, 40))
        for name in ds.schema.names:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(len(rows), ds.schema.field(name).type))
        rows = rows.select(ds.schema.names).cast(ds.schema)
        self.lance.write_dataset(rows, self.path, mode="append", max_rows_per_file=20)

    def do_delete(self, ds: object) -> None:
        ds.delete(f"a % 17 = {self.random.randint(0, 16)}")

    def do_delete_fragment(self, ds: object) -> None:
        chosen = self.random.choice(ds.get_fragments())
        ids = chosen.to_table(columns=["a"])["a"].to_pylist()
        ds.delete(f"a >= {min(ids)} and a <= {max(ids)}")

    def do_update(self, ds: object) -> None:
        values = {"c": "c+1"} if "c" in ds.schema.names else {"b": "'zz'"}
        ds.update(values, where=f"a % 11 = {self.random.randint(0, 10)}")

    def do_upsert(self, ds: object) -> None:
        rows = ds.to_table(limit=10)
        ids = [
            one if at % 2 else 100_000 + self.step * 100 + at
            for at, one in enumerate(rows["a"].to_pylist())
        ]
        rows = rows.set_column(rows.column_names.index("a"), "a", pa.array(ids))
        merge = ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows)

    def do_update_some_columns(self, ds: object) -> None:
        rows = ds.to_table(columns=["a", "b"], limit=15)
        rows = rows.set_column(1, "b", pa.array([f"u{self.step}"] * len(rows)))
        ds.merge_insert("a").when_matched_update_all().execute(rows)

    def do_update_columns_of_fragment(self, ds: object) -> None:
        chosen = self.random.choice(ds.get_fragments())
        rows = chosen.to_table(columns=["b"], with_row_id=True)
        updated, fields = chosen.update_columns(
            rows.set_column(0, "b", pa.array(["uc"] * len(rows)))
        )
        operation = self.lance.LanceOperation.Update(
            updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
        )
        self.lance.LanceDataset.commit(self.path, operation, read_version=ds.version)

    def do_overwrite(self, ds: object) -> None:
        version = self.random.choice(["2.0", "2.1", "2.2"])
        rows = self.table(50)
        self.lance.write_dataset(rows, self.path, mode="overwrite", data_storage_version=version)

    def do_restore(self, ds: object) -> None:
        version = self.random.randint(1, ds.version)
        self.lance.dataset(self.path, version=version).restore()

    # --- columns ----------------------------------------------------------------------------------

    def do_add_column(self, ds: object) -> None:
        ds.add_columns({f"x{self.step}": "a*2"})

    def do_add_nulls(self, ds: object) -> None:
        ds.add_columns(pa.field(f"n{self.step}", pa.int32()))

    def do_drop_column(self, ds: object) -> None:
        ds.drop_columns([self.random.choice([name for name in ds.schema.names if name != "a"])])

    def do_rename(self, ds: object) -> None:
        names = [name for name in ds.schema.names if name[0] in "xn"]
        ds.alter_columns({"path": self.random.choice(names), "name": f"x{self.step}r"})

    def do_cast(self, ds: object) -> None:
        names = [name for name in ds.schema.names if name[0] in "xn"]
        kind = self.random.choice([pa.int16(), pa.float64(), pa.int64()])
        ds.alter_columns({"path": self.random.choice(names), "data_type": kind})

    def do_merge_columns(self, ds: object) -> None:
        def double(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([batch.column(0)], names=[f"x{self.step}m"])

        merged = [one.merge_columns(double, columns=["a"]) for one in ds.get_fragments()]
        operation = self.lance.LanceOperation.Merge([one for one, _ in merged], merged[0][1])
        self.lance.LanceDataset.commit(self.path, operation, read_version=ds.version)

    def do_replace_data(self, ds: object) -> None:
        from lance.file import LanceFileWriter
        from lance.fragment import DataFile

        chosen = self.random.choice(ds.get_fragments())
        old = next(one for one in chosen.metadata.files if len(one.fields) == 1)
        name = next(f.name() for f in ds.lance_schema.fields() if f.id() == old.fields[0])
        schema = pa.schema([ds.schema.field(name)])
        version = f"{old.file_major_version}.{old.file_minor_version}"
        file = f"replaced{self.step}.lance"
        with LanceFileWriter(f"{self.path}/data/{file}", schema, version=version) as writer:
            nulls = pa.nulls(chosen.physical_rows, schema.field(0).type)
            writer.write_batch(pa.record_batch([nulls], schema=schema))
        new = DataFile(
            file, list(old.fields), list(old.column_indices),
            old.file_major_version, old.file_minor_version,
        )  # fmt: skip
        group = self.lance.LanceOperation.DataReplacementGroup(chosen.fragment_id, new)
        operation = self.lance.LanceOperation.DataReplacement([group])
        self.lance.LanceDataset.commit(self.path, operation, read_version=ds.version)

    # --- indices ----------------------------------------------------------------------------------

    def do_index_texts(self, ds: object) -> None:
        ds.create_scalar_index("b", self.random.choice(["BITMAP", "INVERTED", "NGRAM"]))

    def do_index_numbers(self, ds: object) -> None:
        ds.create_scalar_index("a", "BTREE")

    def do_index_zones(self, ds: object) -> None:
        ds.create_scalar_index("a", self.random.choice(["ZONEMAP", "BLOOMFILTER"]), name="zones")

    def do_index_vectors(self, ds: object) -> None:
        ds.create_index("v", "IVF_FLAT", num_partitions=1, replace=True)

    def do_optimize_indices(self, ds: object) -> None:
        ds.optimize.optimize_indices()

    def do_compact(self, ds: object) -> None:
        target = self.random.choice([50, 150, 400])
        ds.optimize.compact_files(target_rows_per_fragment=target)

    def do_compact_and_defer(self, ds: object) -> None:
        ds.optimize.compact_files(target_rows_per_fragment=100, defer_index_remap=True)

    # --- settings ---------------------------------------------------------------------------------

    def do_config(self, ds: object) -> None:
        ds.update_config({f"k{self.step % 3}": str(self.step)})

    def do_table_metadata(self, ds: object) -> None:
        value = str(self.step) if self.random.random() < 0.7 else None
        ds.update_metadata({f"k{self.step % 3}": value}, replace=self.random.random() < 0.3)

    def do_schema_metadata(self, ds: object) -> None:
        ds.update_schema_metadata({f"k{self.step % 3}": str(self.step)})

    def do_field_metadata(self, ds: object) -> None:
        name = self.random.choice(ds.schema.names)
        ds.update_field_metadata({name: {f"q{self.step % 2}": str(self.step)}})

    def do_add_base(self, ds: object) -> None:
        base = f"/somewhere/base{self.step}"
        ds.add_bases([self.lance.DatasetBasePath(base, name=f"b{self.step}")])
