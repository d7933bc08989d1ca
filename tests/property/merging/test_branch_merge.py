"""Random histories on two branches, merged to and fro, against a plain model.

The model keeps, for every version, rows by id: a token that changes when the row is written, and
its values; and columns by name with a token. A merge takes each row and column from the side where
its token differs from the base; where both differ, there must be a conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.format.merge_record import MARK_PREFIX
from lance_nb.merging.merge_plan import MergePlan
from tests.support.examples import examples

_NUMBERS = count()
_TOKENS = count()
MAIN, DEV = "main", "dev"

Row = tuple[int, dict[str, int | None]]


@dataclass(frozen=True)
class State:
    """One version: rows by id, columns and their tokens, settings, its last compaction."""

    rows: dict[int, Row]
    columns: dict[str, int]
    config: dict[str, str] = field(default_factory=dict)
    rewrites: int = 0

    def table(self) -> list[dict[str, int | None]]:
        return [
            {"id": number, **{name: values.get(name) for name in sorted(self.columns)}}
            for number, (_, values) in sorted(self.rows.items())
        ]


class ClashError(Exception):
    """The model sees a conflict."""


def merged(base: State, source: State, target: State, prefer: str | None = None) -> State:
    """Merge three states; raises ClashError where both sides changed the same."""

    def pick(b: object, s: object, t: object) -> str:
        if s in (t, b):
            return "target"
        if t == b:
            return "source"
        if prefer is None:
            raise ClashError
        return prefer

    columns = {}
    for name in {**target.columns, **source.columns}:
        found = [one.columns.get(name) for one in (base, source, target)]
        token = found[1] if pick(*found) == "source" else found[2]
        if token is not None:
            columns[name] = token
    config = {}
    for key in {**target.config, **source.config}:
        texts = [one.config.get(key) for one in (base, source, target)]
        text = texts[1] if pick(*texts) == "source" else texts[2]
        if text is not None:
            config[key] = text
    rows = {}
    for number in {**target.rows, **source.rows}:
        tokens = [
            one.rows[number][0] if number in one.rows else None for one in (base, source, target)
        ]
        taken = pick(*tokens)
        side, other = (source, target) if taken == "source" else (target, source)
        if number not in side.rows:
            continue
        token, values = side.rows[number]
        cells = {}
        for name, wanted in columns.items():
            if side.columns.get(name) == wanted:
                cells[name] = values.get(name)
            elif number in other.rows and other.rows[number][0] == token:
                cells[name] = other.rows[number][1].get(name)
            elif number in base.rows and base.columns.get(name) != wanted and number in other.rows:
                raise ClashError  # written anew on one side, given a new column on the other
            else:
                cells[name] = None
        rows[number] = (token, cells)
    return State(rows, columns, config, target.rewrites)


class Pair:
    """A dataset with two branches, and the model of every version of both."""

    def __init__(self, stable: bool) -> None:
        self.uri = f"memory://merges/{next(_NUMBERS)}.lance"
        ids = list(range(12))
        table = pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})
        main = lance_nb.write_dataset(
            table, self.uri, enable_stable_row_ids=stable, max_rows_per_file=6
        )
        start = State({one: (next(_TOKENS), {"v": one}) for one in ids}, {"v": next(_TOKENS)})
        self.handles = {MAIN: main, DEV: main.create_branch(DEV)}
        self.states = {(MAIN, 1): start, (DEV, 1): start}
        self.next_id = 100

    def now(self, branch: str) -> State:
        return self.states[branch, self.handles[branch].version]

    def put(self, branch: str, state: State) -> None:
        self.states[branch, self.handles[branch].version] = state
        assert content(self.handles[branch]) == state.table()

    # --- changes ----------------------------------------------------------------------------------

    def append(self, branch: str, amount: int) -> None:
        state, names = self.now(branch), sorted(self.now(branch).columns)
        ids = list(range(self.next_id, self.next_id + 1 + amount % 3))
        self.next_id += len(ids)
        columns = {name: pa.array(ids, pa.int64()) for name in ("id", *names)}
        order = self.handles[branch].schema.names
        self.handles[branch].insert(pa.table({name: columns[name] for name in order}))
        rows = {one: (next(_TOKENS), dict.fromkeys(names, one)) for one in ids}
        self.put(branch, replace(state, rows={**state.rows, **rows}))

    def delete(self, branch: str, number: int) -> None:
        state = self.now(branch)
        gone = {one for one in state.rows if one % 11 == number % 11}
        self.handles[branch].delete(f"id % 11 = {number % 11}")
        self.put(
            branch, replace(state, rows={k: v for k, v in state.rows.items() if k not in gone})
        )

    def update(self, branch: str, number: int) -> None:
        state = self.now(branch)
        if "v" not in state.columns:
            return
        chosen = {one for one in state.rows if one % 7 == number % 7}
        value = next(_TOKENS)  # never what is there: rows are compared by their values
        self.handles[branch].update({"v": str(value)}, where=f"id % 7 = {number % 7}")
        rows = dict(state.rows)
        for one in chosen:
            rows[one] = (next(_TOKENS), {**rows[one][1], "v": value})
        self.put(branch, replace(state, rows=rows))

    def add_column(self, branch: str, number: int) -> None:
        state, name = self.now(branch), f"{branch[0]}{number % 3}"
        if name in state.columns:
            return
        self.handles[branch].add_columns({name: f"id + {number}"})
        rows = {
            one: (token, {**old, name: one + number}) for one, (token, old) in state.rows.items()
        }
        columns = {**state.columns, name: next(_TOKENS)}
        self.put(branch, replace(state, rows=rows, columns=columns))

    def drop_column(self, branch: str, number: int) -> None:
        state = self.now(branch)
        own = [name for name in state.columns if name.startswith(branch[0])]
        if not own:
            return
        gone = own[number % len(own)]
        self.handles[branch].drop_columns([gone])
        self.put(
            branch, replace(state, columns={k: v for k, v in state.columns.items() if k != gone})
        )

    def configure(self, branch: str, number: int) -> None:
        state = self.now(branch)
        self.handles[branch].update_config({f"{branch}{number % 2}": str(number)})
        config = {**state.config, f"{branch}{number % 2}": str(number)}
        self.put(branch, replace(state, config=config))

    def compact(self, branch: str, number: int) -> None:
        state, handle = self.now(branch), self.handles[branch]
        before = handle.version
        handle.optimize.compact_files(target_rows_per_fragment=8 + number)
        handle.checkout_latest()
        if handle.version > before:
            self.put(branch, replace(state, rewrites=next(_TOKENS)))

    # --- merges -----------------------------------------------------------------------------------

    def merge_into(self, branch: str, number: int) -> None:
        other = MAIN if branch == DEV else DEV
        plan = self.handles[branch].branches.plan_merge(other)
        source, target = self.now(other), self.now(branch)
        base = self.states[plan.base.branch or MAIN, plan.base.version or 0]
        try:
            expected = merged(base, source, target)
        except ClashError:
            # Rows with ids are merged by value, with the values of columns that one side added.
            same_columns = base.columns == source.columns == target.columns
            assert plan.unresolved or not same_columns, str(plan)
            if same_columns:
                self._decide(branch, other, base, plan)
            return
        if plan.unresolved:
            rewrites = {base.rewrites, source.rewrites, target.rewrites}
            assert {one.kind for one in plan.unresolved} == {"fragments"}, str(plan)
            assert len(rewrites) > 1, str(plan)
            return
        self._take(branch, plan, expected)
        again = self.handles[branch].branches.plan_merge(other)
        assert again.strategy == "up-to-date", str(again)

    def _decide(self, branch: str, other: str, base: State, plan: MergePlan) -> None:
        """Decide conflicts of rows one way, and compare."""
        if {one.kind for one in plan.unresolved} != {"rows"}:
            return
        side = "ours" if self.next_id % 2 else "theirs"
        decided = self.handles[branch].branches.plan_merge(other, on_conflict=side, key="id")
        prefer = "target" if side == "ours" else "source"
        expected = merged(base, self.now(other), self.now(branch), prefer)
        assert not decided.unresolved, str(decided)
        self._take(branch, decided, expected)

    def _take(self, branch: str, plan: MergePlan, expected: State) -> None:
        made = plan.commit()
        assert (made.version is None) == (plan.strategy == "up-to-date")
        self.handles[branch].checkout_latest()
        self.put(branch, expected)
        config = self.handles[branch].config()
        marks = {key for key in config if key.startswith(MARK_PREFIX)}
        assert {key: config[key] for key in config.keys() - marks} == expected.config


def replace(state: State, **changes: object) -> State:
    return State(**{**vars(state), **changes})  # type: ignore[arg-type]


def content(ds: LanceDataset) -> list[dict[str, int | None]]:
    names = ["id", *sorted(name for name in ds.schema.names if name != "id")]
    return sorted(ds.to_table(columns=names).to_pylist(), key=lambda row: row["id"])


CHANGES: tuple[Callable[[Pair, str, int], None], ...] = (
    Pair.append,
    Pair.delete,
    Pair.update,
    Pair.add_column,
    Pair.drop_column,
    Pair.configure,
    Pair.compact,
    Pair.merge_into,
    Pair.merge_into,
)

steps = st.lists(
    st.tuples(st.integers(0, len(CHANGES) - 1), st.sampled_from((MAIN, DEV)), st.integers(0, 20)),
    min_size=3,
    max_size=14,
)


@given(stable=st.booleans(), history=steps)
@examples(16)
def test_a_merge_is_what_a_plain_model_says_or_names_the_conflict(
    stable: bool, history: list[tuple[int, str, int]]
) -> None:
    pair = Pair(stable)
    for number, branch, argument in history:
        CHANGES[number](pair, branch, argument)
    for branch in (MAIN, DEV):
        pair.merge_into(branch, 0)
    for (branch, version), state in pair.states.items():
        name = None if branch == MAIN else branch
        assert content(pair.handles[MAIN].checkout_version((name, version))) == state.table()
