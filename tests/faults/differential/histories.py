"""Random operations on a dataset, as Python text that both libraries take."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa

from tests.faults.differential.play import OURS, PYLANCE, Player, Step, comparable
from tests.faults.differential.reads import State, condition, leaf_paths, literal, quoted, reads_for
from tests.faults.differential.schemas import (
    field_source,
    is_blob,
    plain_metadata,
    random_field,
    random_name,
)
from tests.faults.differential.values import DISTRIBUTIONS, NULL_SHARES, Column, Rows

MAX_STEPS = 7
NUM_READS = 5


def column_for(chance: random.Random, field: pa.Field) -> Column:
    """Choose the values of a column."""
    return Column(
        field.name,
        field.type,
        chance.choice(DISTRIBUTIONS),
        chance.choice(NULL_SHARES),
        chance.randint(0, 1 << 30),
        field.nullable,
        tuple(sorted(plain_metadata(field).items())),
    )


WITHOUT_EFFECT = (
    ", max_rows_per_group=7", ", max_rows_per_file=None", ", max_bytes_per_file=None",
    ", enable_v2_manifest_paths=True", ", data_cache_bytes=1000", ", storage_options={}",
    ", initial_bases=[]", ", base_store_params={}", ", session=None",
)  # fmt: skip


class Author:
    """Makes the steps of one case; each from what the steps before it left."""

    operations: dict[Callable[[Any, State], Step | None], float]  # and how often each is chosen

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.file_version = self.chance.choice(
            ("0.1", *("2.0", "2.1", "2.2") * 2, "2.1", "2.2", "2.2")
        )
        self.next_uid = 0
        self.branch: str | None = None
        self.number = 0
        self.length = self.chance.choice((1, 2, 3, 5, MAX_STEPS)) + 1

    def operation(self, player: Player) -> Step | None:
        """Make the next step, without reads; None when the case is complete."""
        if self.number == 0:
            self.number = 1
            return self._first()
        while self.number < self.length:
            self.number += 1
            state = known_state(player, self.branch)
            if state is None:
                return None
            if state.branches and self.chance.random() < 0.3:
                self.branch = self.chance.choice([None, *state.branches])
                state = known_state(player, self.branch)
            step = None if state is None else self._next(state)
            if step is not None:
                return step
        return None

    def reads(self, player: Player, branch: str | None) -> tuple[str, ...]:
        """Choose reads of what the last step left."""
        state = known_state(player, branch)
        if state is None:
            return ()
        return reads_for(self.chance, state, self.chance.randint(1, NUM_READS))

    def _actor(self) -> str:
        return self.chance.choice((OURS, PYLANCE))

    def _rows(self, columns: tuple[Column, ...], count: int | None = None) -> Rows:
        chance = self.chance
        if count is None:
            count = chance.choice((0, 1, 2, 20, 60, 200, 700, 1500, 4500))
            if count > 200 and chance.random() < 0.5:
                count = 50
        start = self.next_uid
        self.next_uid += count + 6
        return Rows(count, columns, start + 3, chunks=chance.choice((1, 1, 1, 3)),
                    sliced=chance.random() < 0.25)  # fmt: skip

    def _first(self) -> Step:
        chance = self.chance
        fields = [
            random_field(chance, random_name(chance, at), self.file_version)
            for at in range(chance.choice((1, 1, 2, 3, 4)))
        ]
        rows = self._rows(tuple(column_for(chance, one) for one in fields))
        options = f"data_storage_version={self.file_version!r}"
        if chance.random() < 0.35:
            options += ", enable_stable_row_ids=True"
        code = f"lance.write_dataset(t, uri, {options}{self._sizes(rows)})"
        return self._by_pylance(Step(self._actor(), code, rows), self.file_version)

    @staticmethod
    def _by_pylance(step: Step, file_version: str) -> Step:
        """Let pylance alone write files of version 0.1, which we only read."""
        if file_version != "0.1":
            return step
        rows = step.rows
        if rows is not None:
            # 0.1 stores the number below a null, but its page statistics know of the null: what
            # pylance answers depends on which of the two it looks at.
            columns = tuple(
                replace(one, nulls=0.0, values="random" if one.values == "null" else one.values)
                for one in rows.columns
            )
            order = tuple(name for name in rows.order if name != "key")
            step = replace(step, rows=replace(rows, columns=columns, key=False, order=order))
        writes = step.rows is not None or re.search(
            r"\.(update|add_|alter|optimize|stale)", step.code
        )
        return replace(step, actor=PYLANCE, other=False) if writes else step

    def _sizes(self, rows: Rows) -> str:
        chance = self.chance
        options = ""
        if chance.random() < 0.5:
            least = max(1, rows.count // 8)
            options += f", max_rows_per_file={chance.choice((least, least * 3, 100000))}"
        if chance.random() < 0.15:
            options += chance.choice(WITHOUT_EFFECT)
        return options

    def _next(self, state: State) -> Step | None:
        make = self.chance.choices(list(self.operations), list(self.operations.values()))[0]
        step = make(self, state)
        if step is None:
            return None
        if self.branch is not None and "lance.write_dataset" in step.code:
            code = step.code.replace("lance.write_dataset(t, uri", "ds.insert(t")
            step = replace(step, code=code)
        return self._by_pylance(replace(step, branch=self.branch), state.file_version)

    # --- operations ----------------------------------------------------------------------------

    def append(self, state: State) -> Step:
        chance = self.chance
        fields = [one for one in state.schema if one.name not in ("uid", "key")]
        if chance.random() < 0.15:
            fields = [one for one in fields if chance.random() < 0.6]
        rows = self._rows(tuple(column_for(chance, one) for one in fields))
        if chance.random() < 0.15:
            names = ["uid", "key", *(one.name for one in fields)]
            rows = replace(rows, order=tuple(chance.sample(names, len(names))))
        source = "t"
        if chance.random() < 0.15:
            source = f"t.to_reader(max_chunksize={chance.choice((1, 7, 100))})"
            rows = replace(rows, count=min(rows.count, 300))
        call = chance.choice((
            f"lance.write_dataset({source}, uri, mode='append'", f"ds.insert({source}",
        ))  # fmt: skip
        if self.branch is not None:
            call = f"ds.insert({source}"
        return Step(self._actor(), f"{call}{self._sizes(rows)})", rows)

    def overwrite(self, state: State) -> Step:
        chance = self.chance
        step = self._first()
        if chance.random() < 0.5:
            fields = [one for one in state.schema if one.name not in ("uid", "key")]
            columns = tuple(column_for(chance, one) for one in fields)
            rows = self._rows(columns)
            code = f"lance.write_dataset(t, uri, mode='overwrite'{self._sizes(rows)})"
            return Step(self._actor(), code, rows)
        return replace(step, code=step.code.replace("t, uri,", "t, uri, mode='overwrite',"))

    def delete(self, state: State) -> Step:
        return Step(self._actor(), f"ds.delete({condition(self.chance, state)!r})")

    def truncate(self, state: State) -> Step:
        return Step(self._actor(), "ds.truncate_table()")

    def update(self, state: State) -> Step:
        chance = self.chance
        paths = leaf_paths(state.schema)
        blobs = {f"`{one.name}`" for one in state.schema if is_blob(one)}
        tops = [path for path in sorted(paths) if "`.`" not in path and path != "`uid`"]
        values = {}
        for path in chance.sample(tops, min(len(tops), chance.choice((1, 1, 2)))):
            name = path.strip("`")
            known = [literal(one, paths[path]) for one in state.samples.get(path, [])]
            options = [one for one in known if one is not None]
            options += ["NULL"] if state.file_version != "0.1" else []
            if path not in blobs:
                options.append(path)
            if name == "key":
                options += ["key + 1", "uid % 5"]
            values[name] = chance.choice(options or [path])
        where = f", where={condition(chance, state)!r}" if chance.random() < 0.85 else ""
        return Step(self._actor(), f"ds.update({values}{where})", ordered=False)

    def merge_insert(self, state: State) -> Step:
        chance = self.chance
        fields = [one for one in state.schema if one.name not in ("uid", "key")]
        partial = chance.random() < 0.25
        if partial:
            fields = [one for one in fields if chance.random() < 0.5]
        rows = self._rows(tuple(column_for(chance, one) for one in fields),
                          chance.choice((1, 5, 40, 120)))  # fmt: skip
        rows = replace(rows, start=chance.randint(0, max(rows.start or 0, 1)))
        clauses = []
        matched = chance.choice(("all", "all", "all", "if", "none", "delete"))
        if matched == "all":
            clauses.append("when_matched_update_all()")
        elif matched == "if":
            clauses.append("when_matched_update_all('source.key > target.key')")
        elif matched == "delete":
            clauses.append("when_matched_delete()")
        if matched == "none" or (not partial and chance.random() < 0.7):
            clauses.append("when_not_matched_insert_all()")
        if chance.random() < 0.15:
            clauses.append(f"when_not_matched_by_source_delete('key = {chance.randint(0, 9)}')")
        code = f"ds.merge_insert('uid').{'.'.join(clauses)}.execute(t)"
        return Step(self._actor(), code, rows, ordered=False)

    def add_expression(self, state: State) -> Step | None:
        chance = self.chance
        name = f"n{self.number}"
        paths = leaf_paths(state.schema)
        path = chance.choice(sorted(paths))
        text = chance.choice((path, "uid * 2", "CAST(key AS string)", "key > 3", f"{path} IS NULL",
                              "'constant'", "CAST(uid AS float)"))  # fmt: skip
        return Step(self._actor(), f"ds.add_columns({{{name!r}: {text!r}}})")

    def add_nulls(self, state: State) -> Step:
        field = random_field(self.chance, f"n{self.number}", state.file_version)
        return Step(self._actor(), f"ds.add_columns({field_source(field.with_nullable(True))})")

    def add_values(self, state: State) -> Step | None:
        if not state.count or state.count > 5000:
            return None
        field = random_field(self.chance, f"n{self.number}", state.file_version)
        rows = Rows(state.count, (column_for(self.chance, field),), None, key=False)
        size = self.chance.choice((7, 100, 100000)) if state.count < 500 else 1000
        return Step(self._actor(), f"ds.add_columns(t.to_reader(max_chunksize={size}))", rows)

    def join(self, state: State) -> Step | None:
        field = random_field(self.chance, f"n{self.number}", state.file_version)
        rows = Rows(self.chance.choice((1, 30, 150)), (column_for(self.chance, field),),
                    self.chance.randint(0, 40), key=False)  # fmt: skip
        return Step(self._actor(), "ds.merge(t, 'uid')", rows)

    def drop_columns(self, state: State) -> Step | None:
        paths = [path for path in leaf_paths(state.schema) if path not in ("`uid`", "`key`")]
        if not paths:
            return None
        path = self.chance.choice(paths)
        text = ".".join(map(quoted, path.strip("`").split("`.`")))
        return Step(self._actor(), f"ds.drop_columns([{text!r}])")

    def rename(self, state: State) -> Step | None:
        names = [one for one in state.schema.names if one not in ("uid", "key")]
        if not names:
            return None
        old = quoted(self.chance.choice(names))
        return Step(self._actor(),
                    f"ds.alter_columns({{'path': {old!r}, 'name': 'r{self.number}'}})")  # fmt: skip

    def alter(self, state: State) -> Step | None:
        field = self.chance.choice(list(state.schema))
        if field.name in ("uid", "key") or pa.types.is_null(field.type):
            return None
        kinds = {
            pa.int64(): "pa.int32()", pa.int32(): "pa.int64()", pa.int8(): "pa.int16()",
            pa.float32(): "pa.float64()", pa.float64(): "pa.float32()", pa.int16(): "pa.float32()",
            pa.string(): "pa.large_string()", pa.large_string(): "pa.string()",
            pa.timestamp("ms"): "pa.timestamp('us')", pa.date32(): "pa.timestamp('s')",
            pa.binary(): "pa.large_binary()", pa.uint8(): "pa.string()",
        }  # fmt: skip
        text = f"'nullable': {not field.nullable}"
        wanted = None if isinstance(field.type, pa.BaseExtensionType) else kinds.get(field.type)
        if wanted is not None and self.chance.random() < 0.8:
            text = f"'data_type': {wanted}"
        path = quoted(field.name)
        return Step(self._actor(), f"ds.alter_columns({{'path': {path!r}, {text}}})")

    def compact(self, state: State) -> Step:
        options = f"target_rows_per_fragment={self.chance.choice((10, 100, 100000))}"
        if self.chance.random() < 0.5:
            options += f", materialize_deletions_threshold={self.chance.choice((0.0, 0.1, 0.9))}"
        if self.chance.random() < 0.3:
            options += ", num_threads=1"
        return Step(self._actor(), f"ds.optimize.compact_files({options})", ordered=False)

    def update_columns(self, state: State) -> Step | None:
        """Rewrite a column in place: its old values become a tombstone in the data file."""
        fields = [
            one for one in state.schema if one.name not in ("uid", "key") and not is_blob(one)
        ]
        if not fields or self.branch is not None or state.count == 0:
            return None
        rows = Rows(self.chance.choice((1, 30, 150)),
                    (column_for(self.chance, self.chance.choice(fields)),),
                    self.chance.randint(0, 40), key=False)  # fmt: skip
        return Step(self._actor(), "update_columns(lance, ds, t)", rows)

    def restore(self, state: State) -> Step:
        return Step(self._actor(), f"opened({self.chance.choice(state.versions or [1])}).restore()")

    def tag(self, state: State) -> Step:
        version = self.chance.choice(state.versions or [1])
        place = version if self.branch is None else (self.branch, version)
        return Step(self._actor(), f"ds.tags.create('tag{self.number}', {place})")

    def make_branch(self, state: State) -> Step | None:
        if self.branch is not None:
            return None
        name = f"b{self.number}"
        version = self.chance.choice(state.versions or [1])
        return Step(self._actor(), f"ds.create_branch({name!r}, {version})")

    def index(self, state: State) -> Step:
        name = self.chance.choice(("key", "uid"))
        kind = self.chance.choice(("BTREE", "BITMAP"))
        return Step(PYLANCE, f"ds.create_scalar_index({name!r}, {kind!r})", other=False)

    def stale(self, state: State) -> Step | None:
        """Write through a handle of the version before the newest."""
        if len(state.versions) < 2:
            return None
        step = self.delete(state) if self.chance.random() < 0.5 else self.append(state)
        code = step.code.replace("lance.write_dataset(t, uri, mode='append'", "ds.insert(t")
        return replace(step, code=code.replace("ds.", f"opened({state.versions[-2]}).", 1))


OPERATIONS: dict[Callable[[Author, State], Step | None], float] = {
    Author.append: 5, Author.overwrite: 1, Author.delete: 4, Author.truncate: 0.2,
    Author.update: 3, Author.merge_insert: 3, Author.add_expression: 1, Author.add_nulls: 1,
    Author.add_values: 1, Author.join: 1, Author.drop_columns: 1.5, Author.rename: 0.7,
    Author.alter: 1, Author.update_columns: 1, Author.compact: 2, Author.restore: 0.7,
    Author.tag: 0.4,
    Author.make_branch: 0.8, Author.index: 0.5, Author.stale: 0.3,
}  # fmt: skip
Author.operations = OPERATIONS


def known_state(player: Player, branch: str | None) -> State | None:
    """Ask pylance what there is."""
    try:
        dataset: Any = lance.dataset(str(player.root))
        if branch is not None:
            dataset = dataset.checkout_version((branch, None))
        head = dataset.to_table(limit=40)
    except Exception:  # noqa: BLE001 (the comparison says why)
        return None
    samples: dict[str, list[Any]] = {}
    for name in head.column_names:
        try:
            column = pa.concat_arrays(comparable(head[name]).chunks) if head.num_rows else None
        except pa.ArrowException:  # pylance returned an array that is not valid
            continue
        if column is not None:
            _sample(samples, f"`{name}`", column)
    return State(
        dataset.schema, dataset.count_rows(), dataset.data_storage_version,
        dataset.has_stable_row_ids, [one["version"] for one in dataset.versions()],
        sorted(dataset.branches.list()), sorted(dataset.tags.list()), samples, branch,
    )  # fmt: skip


def _sample(samples: dict[str, list[Any]], path: str, array: Any) -> None:
    if pa.types.is_struct(array.type):
        for at, field in enumerate(array.type):
            _sample(samples, f"{path}.`{field.name}`", array.field(at))
        return
    if pa.types.is_nested(array.type):
        return
    found = []
    for value in array[:40]:
        try:
            found.append(value.as_py())
        except (ValueError, OverflowError, KeyError):
            continue
    samples[path] = [one for one in found if one is not None][:12]
