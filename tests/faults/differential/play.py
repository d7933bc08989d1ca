"""Run the steps of a case with both libraries and compare.

Each operation runs twice: on the dataset by the one library, on a copy of it by the other. pylance
reads both results, which must be equal; the first goes on. Each read runs with both libraries on
the same files. Where both refuse, they agree.
"""

from __future__ import annotations

import re
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import ColumnOrdering as TheirOrdering
from lance.file import LanceFileReader

import lance_nb
from lance_nb.errors import LanceError
from lance_nb.table.ordering import ColumnOrdering as OurOrdering
from tests.faults.command import memory_folder
from tests.faults.differential.known import Place, accepted
from tests.faults.differential.values import Rows, take
from tests.support.reading import decoded, first_difference, same

OURS, PYLANCE = "ours", "pylance"
ENGINES = {OURS: lance_nb, PYLANCE: lance}
FILE_READERS = {OURS: lance_nb.LanceFileReader, PYLANCE: LanceFileReader}
LINEAGE = ["uid", "_row_created_at_version", "_row_last_updated_at_version"]
P = TypeVar("P", bound="Player")


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One operation as Python text over ``lance``, ``ds``, ``uri`` and the table ``t``; then reads.

    ``other``: the other library does it too, on a copy. ``ordered``: both leave the same order of
    rows. ``branch``: whose newest version is compared and read.
    """

    actor: str
    code: str
    rows: Rows | None = None
    reads: tuple[str, ...] = ()
    other: bool = True
    ordered: bool = True
    branch: str | None = None

    def __repr__(self) -> str:
        parts = [repr(self.actor), repr(self.code)]
        parts += [
            f"{name}={value!r}"
            for name, default in (("rows", None), ("reads", ()), ("other", True),
                                  ("ordered", True), ("branch", None))
            if (value := getattr(self, name)) != default
        ]  # fmt: skip
        return f"Step({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference: what was done, and how the two differ."""

    code: str
    text: str

    @property
    def signature(self) -> str:
        """Name the kind of the difference; numbers and names do not matter."""
        place = re.match(
            r"(leaves other \w+: )?(columns|schema metadata|name of column|nullable|"
            r"type of column|metadata of column|values of \w+) ", self.text,
        )  # fmt: skip
        if place:
            return f"{kind_of(self.code)}: {place.group()}"
        what = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|/\S+|[0-9a-f]{8,}|-?\d+", "", self.text)
        return f"{kind_of(self.code)}: {' '.join(what.split())[:110]}"


def kind_of(code: str) -> str:
    """Name the call of a step or read."""
    calls = re.findall(r"(?<![\w.])(?:ds|lance|opened|f)\b\S*?\.(\w+)\(", code)
    return calls[-1] if calls else re.split(r"\W", code)[0]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a library answered: a value, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None


class Player:
    """The dataset of one case, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "d"
        self._copy = folder / "copy"

    def play(self, step: Step) -> Finding | None:
        """Do a step and its reads; return the first difference."""
        finding = self.operate(step)
        for code in () if finding else step.reads:
            finding = finding or self.read(code, step.branch)
        return finding

    def operate(self, step: Step) -> Finding | None:
        """Do the operation of a step with both libraries; return a difference."""
        table = None if step.rows is None else step.rows.table()
        if not step.other:
            self._run(step.actor, step.code, self.root, table, step.branch)
            return None
        shutil.rmtree(self._copy, ignore_errors=True)
        if self.root.exists():
            shutil.copytree(self.root, self._copy)
        roots = {step.actor: self.root, _opposite(step.actor): self._copy}
        outcomes = {
            actor: self._run(actor, step.code, root, table, step.branch)
            for actor, root in roots.items()
        }
        finding = refusals(step.code, outcomes, self.place(step.branch))
        if finding is None and not any(one.error for one in outcomes.values()):
            values = {actor: one.value for actor, one in outcomes.items()}
            finding = self._compare_results(step, roots, values)
        if any(one.error for one in outcomes.values()) and outcomes[step.actor].error is None:
            self._drop_partial(step)
        return finding

    def _drop_partial(self, step: Step) -> None:
        """Go on with what was there when only the other library refused."""
        shutil.rmtree(self.root)
        if self._copy.exists():
            shutil.copytree(self._copy, self.root)

    def finish(self) -> Finding | None:
        """Look once more when all steps are done."""
        return None

    def place(self, branch: str | None) -> Place:
        """Return what pylance says of the dataset before the step."""
        try:
            dataset = lance.dataset(str(self.root))
            if branch is not None:
                dataset = dataset.checkout_version((branch, None))
            has_index = bool(dataset.describe_indices())
            return Place(dataset.schema, has_index, dataset.data_storage_version)
        except Exception:  # noqa: BLE001 (there is no dataset yet, or pylance cannot open it)
            return Place()

    def _compare_results(
        self, step: Step, roots: dict[str, Path], values: dict[str, Any]
    ) -> Finding | None:
        answer = difference(plain_answer(values[OURS]), plain_answer(values[PYLANCE]))
        if answer:
            return _finding(step.code, f"returns {answer}", self.place(step.branch))
        states = {
            actor: outcome_of(lambda root=root: self._state(root, step))
            for actor, root in roots.items()
        }
        finding = refusals(f"{step.code}  # read by pylance", states, self.place(step.branch))
        if finding is not None or any(one.error for one in states.values()):
            return finding
        for name, mine in states[OURS].value.items():
            text = difference(mine, states[PYLANCE].value[name])
            if text:
                return _finding(step.code, f"leaves other {name}: {text}", self.place(step.branch))
        return None

    def _state(self, root: Path, step: Step) -> dict[str, Any]:
        """Read with pylance what must be equal after an operation."""
        dataset = lance.dataset(str(root))
        if step.branch is not None:
            dataset = dataset.checkout_version((step.branch, None))
        dataset.validate()
        table = dataset.to_table(blob_handling="all_binary")
        lineage = None
        if dataset.has_stable_row_ids and "uid" in table.column_names:
            lineage = dataset.to_table(columns=LINEAGE, with_row_id=True)
        if not step.ordered and "uid" in table.column_names:
            table, lineage = by_uid(table), lineage and by_uid(lineage)
        return {
            "version": dataset.version,
            "schema": dataset.schema,
            "highest field id": dataset.max_field_id,
            "count": dataset.count_rows(),
            "rows": table,
            "lineage": lineage,
            "tags": {name: one["version"] for name, one in dataset.tags.list().items()},
            "indices": [(one.name, one.fields) for one in dataset.describe_indices()],
        }

    def read(self, code: str, branch: str | None) -> Finding | None:
        """Read with both libraries; return a difference."""
        outcomes = {actor: self._run(actor, code, self.root, None, branch) for actor in ENGINES}
        finding = refusals(code, outcomes, self.place(branch))
        if finding is not None or any(one.error for one in outcomes.values()):
            return finding
        text = difference(outcomes[OURS].value, outcomes[PYLANCE].value)
        return _finding(code, text, self.place(branch)) if text else None

    def _run(
        self, actor: str, code: str, root: Path, table: pa.Table | None, branch: str | None
    ) -> Outcome:
        module = ENGINES[actor]
        options: dict[str, Any] = {}
        if actor == OURS:
            options["allow_bases"] = [str(self.root), str(self._copy)]

        def opened(version: Any = None) -> Any:
            dataset = module.dataset(str(root), **options)
            if branch is not None:
                return dataset.checkout_version((branch, version))
            return dataset if version is None else dataset.checkout_version(version)

        names = {
            "lance": module, "uri": str(root), "t": table, "pa": pa, "pc": pc, "np": np,
            "opened": opened, "joined": joined, "together": together, "by_row_id": by_row_id,
            "append_fragments": append_fragments,
            "update_columns": update_columns, "payloads": payloads, "paths": data_paths,
            "file_reader": FILE_READERS[actor],
            "cloned": partial(cloned, self.root, actor),
            "by": OurOrdering if actor == OURS else TheirOrdering,
        }  # fmt: skip

        def act() -> Any:
            if re.search(r"\bds\b", code):
                names["ds"] = opened()
            return plain_answer(eval(code, names))  # noqa: S307

        return outcome_of(act)


def _opposite(actor: str) -> str:
    return PYLANCE if actor == OURS else OURS


def outcome_of(act: Any) -> Outcome:
    try:
        return Outcome(act())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (panics of pylance)
        return Outcome(error=error)


def joined(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """Put batches together."""
    found = [one for one in batches if one.num_rows]
    return pa.Table.from_batches(found) if found else None


def by_row_id(dataset: Any, ids: list[int]) -> pa.Table:
    """Take rows by their ids; pylance's method is not public."""
    take_rows = dataset.take_rows if hasattr(dataset, "take_rows") else dataset._take_rows
    return take_rows(ids)


def together(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Put tables together."""
    found = list(tables)
    return pa.concat_tables(found) if found else None


def update_columns(module: Any, dataset: Any, table: pa.Table) -> None:
    """Rewrite columns of the first fragment by uid, and commit that."""
    fragment = dataset.get_fragments()[0]
    updated, fields = fragment.update_columns(table, left_on="uid", right_on="uid")
    operation = module.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    module.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def append_fragments(module: Any, dataset: Any, table: pa.Table) -> None:
    """Write fragments and commit them by hand."""
    fragments = getattr(module, "fragment", module).write_fragments(
        table, dataset.uri, data_storage_version=dataset.data_storage_version
    )
    operation = module.LanceOperation.Append(fragments)
    module.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def payloads(blobs: Sequence[Any]) -> list[bytes | None]:
    """Read blobs to their ends."""
    return [None if one is None else one.readall() for one in blobs]


def data_paths(dataset: Any) -> list[str]:
    """List the data files that lie in the dataset's own folder."""
    folder = Path(dataset.uri.removeprefix("file://")) / "data"
    names = [one.path for f in dataset.get_fragments() for one in f.metadata.files]
    return [str(folder / name) for name in names if (folder / name).exists()]


def cloned(
    root: Path, actor: str, dataset: Any, method: str, reference: Any, *, change: str | None
) -> list[Any]:
    """Clone a version beside the dataset and change the clone; what both libraries read of it."""
    target = root.parent / f"clone by {actor}"
    shutil.rmtree(target, ignore_errors=True)
    clone = getattr(dataset, method)(str(target), reference)
    if change is not None:
        clone.delete(change)
    ours = lance_nb.dataset(str(target), allow_bases=[str(root)])
    return [ours.to_table(), lance.dataset(str(target)).to_table(), clone.count_rows()]


def by_uid(table: pa.Table) -> pa.Table:
    """Order rows by uid."""
    order = np.argsort(np.asarray(table["uid"].fill_null(-1)), kind="stable")
    columns = {
        name: take(_whole(comparable(decoded(column))), order)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def plain_answer(value: Any) -> Any:
    """Reduce an answer to what both libraries mean by it."""
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if isinstance(value, dict):
        return {str(key): plain_answer(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_answer(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str | bytes | pa.Table | pa.Schema):
        return value
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return pa.table({"values": value})
    return None  # datasets, handles, statistics of an operation


def refusals(code: str, outcomes: dict[str, Outcome], place: Place) -> Finding | None:
    """Return a finding if one library alone refuses, or ours by an error that is not its own."""
    ours, theirs = outcomes[OURS].error, outcomes[PYLANCE].error
    # Not an error of the text itself, which both libraries meet.
    is_bare = not isinstance(ours, LanceError | None) and type(ours) is not type(theirs)
    if ours is not None and is_bare and "read by pylance" not in code:
        frame = traceback.extract_tb(ours.__traceback__)[-1]
        where = f"{Path(frame.filename).stem}.{frame.name}"
        text = f"ours raises a bare {type(ours).__name__} in {where}: {ours}"
        return _finding(code, text, place)
    if (ours is None) == (theirs is None):
        return None
    if "read by pylance" in code:
        who, error = ("ours", ours) if ours is not None else ("pylance's", theirs)
        return _finding(code, f"pylance cannot read what {who} wrote: {_text(error)}", place)
    who, error = ("ours", ours) if ours is not None else ("pylance", theirs)
    return _finding(code, f"{who} alone refuses: {_text(error)}", place)


def _text(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}"


def _finding(code: str, text: str, place: Place) -> Finding | None:
    return None if accepted(code, text, place) else Finding(code, text)


def difference(mine: Any, theirs: Any) -> str | None:
    """Say how our answer differs from pylance's; None if it does not."""
    if isinstance(mine, pa.Table) and isinstance(theirs, pa.Table):
        return _table_difference(mine, theirs)
    if isinstance(mine, pa.Schema) and isinstance(theirs, pa.Schema):
        if mine.equals(theirs, check_metadata=True):
            return None
        pairs = zip(mine, theirs, strict=False)
        one, other = next(
            (pair for pair in pairs if not pair[0].equals(pair[1], check_metadata=True)),
            (mine, theirs),
        )
        return f"{_kind_of_schemas(one, other)} {_short(one)}, not {_short(other)}"
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = zip(mine, theirs, strict=True)
        return next(filter(None, (difference(one, other) for one, other in pairs)), None)
    if isinstance(mine, dict) and isinstance(theirs, dict) and set(mine) == set(theirs):
        return next(filter(None, (difference(mine[key], theirs[key]) for key in mine)), None)
    if isinstance(mine, float) and isinstance(theirs, float) and np.isnan([mine, theirs]).all():
        return None
    if type(mine) is type(theirs) and mine == theirs:
        return None
    return f"answer {mine!r:.200}, not {theirs!r:.200}"


def _kind_of_schemas(one: Any, other: Any) -> str:
    if not isinstance(one, pa.Field):
        return "columns" if len(one) != len(other) else "schema metadata"
    if one.name != other.name:
        return "name of column"
    if one.type != other.type:
        return "type of column"
    return "nullable" if one.nullable != other.nullable else "metadata of column"


def _short(part: pa.Schema | pa.Field) -> str:
    if isinstance(part, pa.Field):
        return f"{part} {part.metadata or ''}"[:300]
    return f"{part}; {part.metadata}".replace("\n", "; ")[:300]


def _table_difference(mine: pa.Table, theirs: pa.Table) -> str | None:
    text = difference(mine.schema, theirs.schema)
    if text:
        return text
    if mine.num_rows != theirs.num_rows:
        return f"rows: {mine.num_rows}, not {theirs.num_rows}"
    for name, got, expected in zip(mine.column_names, mine.columns, theirs.columns, strict=True):
        if _invalid(expected):
            continue  # what pylance returns is damaged: Arrow would end the process
        try:
            got.validate(full=True)
        except pa.ArrowException as error:
            return f"invalid column {name!r}: {error}"
        one, other = comparable(decoded(got)), comparable(decoded(expected))
        if not same(one, other):
            return f"values of {_family(got.type)} {name!r}: {first_difference(one, other)}"
    return None


def _family(kind: pa.DataType) -> str:
    return re.split(r"[<(\[]", str(kind))[0]


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace extension types and dictionaries, nested ones too, by their values."""
    plain = stored_type(column.type)
    if plain == column.type:
        return column
    try:
        return column.cast(plain)
    except pa.ArrowInvalid:  # Arrow casts no nulls to a type that says that there are none
        return column.cast(stored_type(column.type, nullable=True))


def stored_type(kind: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    """Return a type without extension types and dictionaries; ``nullable``: below it as well."""

    def field(one: pa.Field) -> pa.Field:
        made = one.with_type(stored_type(one.type, nullable=nullable))
        return made.with_nullable(True) if nullable else made

    if isinstance(kind, pa.BaseExtensionType):
        return stored_type(kind.storage_type, nullable=nullable)
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type, nullable=nullable)
    if pa.types.is_struct(kind):
        return pa.struct([field(one) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, field(kind.item_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field(kind.value_field), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(field(kind.value_field))
    return kind


def _invalid(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowException:
        return True
    return False


@contextmanager
def playing(kind: type[P] = Player) -> Iterator[P]:  # type: ignore[assignment]
    """Make a player in memory, and remove what it wrote."""
    with memory_folder() as path:
        yield kind(Path(path))


def first_finding(steps: Sequence[Step], kind: type[Player] = Player) -> tuple[int, Finding] | None:
    """Play steps; return the number of the first that differs, and how."""
    with playing(kind) as player:
        for number, step in enumerate(steps):
            finding = player.play(step)
            if finding is not None:
                return number, finding
        finding = player.finish()
        return None if finding is None else (len(steps), finding)


def reproduce(steps: Sequence[Step]) -> None:
    """Play the steps of a report and print what differs."""
    found = first_finding(steps)
    if found is None:
        print("no difference")
    else:
        print(f"step {found[0]}: {found[1].code}\n{found[1].text}")


__all__ = ["ENGINES", "OURS", "PYLANCE", "Finding", "Player", "Step", "first_finding", "playing",
           "replace", "reproduce", "suppress"]  # fmt: skip
