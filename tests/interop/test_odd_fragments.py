"""Commits of fragments that a caller put together: operations x odd fragments x kinds of dataset.

pylance is the judge. What we commit both can read, with equal values. What pylance commits and can
read we commit as well, but for the cases of ``WRONG_THERE``, where its answer is wrong. In CI a
sample of the cells is tried, other ones each day; ``LANCE_NB_TEST_SCALE=20`` tries all.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyarrow import ipc

import lance_nb
from tests.interop.hand_commits import judge, outcome
from tests.interop.matrix import SCALE

pytestmark = pytest.mark.interop

Json = dict[str, Any]
ROWS = pa.table(
    {
        "a": pa.array(range(6), pa.int64()),
        "b": [str(i) for i in range(6)],
        "s": pa.array([{"x": i, "y": float(i)} for i in range(6)]),
    }
)
FLAT = ROWS.drop_columns(["s"])
REQUIRED = ROWS.cast(pa.schema([field.with_nullable(False) for field in ROWS.schema]))
BASES: dict[str, tuple[pa.Table, str, bool]] = {
    "2.2": (ROWS, "2.2", False),
    "stable row ids": (ROWS, "2.2", True),
    "2.1": (ROWS, "2.1", False),
    "2.0": (ROWS, "2.0", False),
    "required": (REQUIRED, "2.2", False),
    "0.1": (FLAT, "0.1", False),
}
CELLS_OF_CI = 340
TODAY = dt.datetime.now(dt.UTC).toordinal()
SEED = int(os.environ.get("LANCE_NB_TEST_SEED", TODAY))


# --- what is odd about a fragment -----------------------------------------------------------------


def fields(change: Callable[[list[int]], list[int]]) -> Callable[[Json], None]:
    def apply(fragment: Json) -> None:
        file = fragment["files"][0]
        file["fields"] = change(file["fields"])

    return apply


def columns(change: Callable[[list[int]], list[int]]) -> Callable[[Json], None]:
    def apply(fragment: Json) -> None:
        file = fragment["files"][0]
        file["column_indices"] = change(file["column_indices"])

    return apply


def listed(field: int, column: int) -> Callable[[Json], None]:
    def apply(fragment: Json) -> None:
        file = fragment["files"][0]
        file["fields"] = [*file["fields"], field]
        file["column_indices"] = [*file["column_indices"], column]

    return apply


def file_value(**values: Any) -> Callable[[Json], None]:
    return lambda fragment: fragment["files"][0].update(values)


def recorded(major: int, minor: int) -> Callable[[Json], None]:
    return file_value(file_major_version=major, file_minor_version=minor)


def second_file(change: Callable[[list[int]], list[int]]) -> Callable[[Json], None]:
    def apply(fragment: Json) -> None:
        file = fragment["files"][0]
        fragment["files"].append({**file, "fields": change(file["fields"])})

    return apply


def value(**values: Any) -> Callable[[Json], None]:
    return lambda fragment: fragment.update(values)


def row_ids(*ids: int) -> Callable[[Json], None]:
    data = lance_nb.RowIdSequence(ids).to_inline_metadata().sequence.data
    return value(row_id_meta={"Inline": list(data)})


ODDITIES: dict[str, Callable[[Json], None]] = {
    "as written": lambda _: None,
    "all -1": fields(lambda ids: [-1 for _ in ids]),
    "all -2": fields(lambda ids: [-2 for _ in ids]),
    "-1 and -2": fields(lambda ids: [-1] + [-2 for _ in ids[1:]]),
    "all -3": fields(lambda ids: [-3 for _ in ids]),
    "one -1": fields(lambda ids: [-1, *ids[1:]]),
    "one -2": fields(lambda ids: [-2, *ids[1:]]),
    "one -3": fields(lambda ids: [-3, *ids[1:]]),
    "one -7": fields(lambda ids: [-7, *ids[1:]]),
    "all unknown": fields(lambda ids: [99 + field for field in ids]),
    "one unknown": fields(lambda ids: [99, *ids[1:]]),
    "unknown and -2": fields(lambda ids: [99] + [-2 for _ in ids[1:]]),
    "struct in place of a leaf": fields(lambda ids: [*ids[:2], 2, *ids[3:]]),
    "struct without column": listed(2, -1),
    "struct with column": listed(2, 2),
    "field twice": fields(lambda ids: [ids[0], ids[0], *ids[2:]]),
    "no field": file_value(fields=[], column_indices=[]),
    "columns without fields": file_value(fields=[]),
    "fields without columns": file_value(column_indices=[]),
    "fewer columns": columns(lambda numbers: numbers[:-1]),
    "more columns": columns(lambda numbers: [*numbers, 0]),
    "column twice": columns(lambda numbers: [numbers[-1], *numbers[1:]] if numbers else []),
    "columns swapped": columns(lambda numbers: [*numbers[1::-1], *numbers[2:]]),
    "column beyond": columns(lambda numbers: [50, *numbers[1:]] if numbers else []),
    "column -1": columns(lambda numbers: [-1, *numbers[1:]] if numbers else []),
    "column -7": columns(lambda numbers: [-7, *numbers[1:]] if numbers else []),
    "no file": value(files=[]),
    "missing file": file_value(path="missing.lance"),
    "path outside": file_value(path="../outside.lance"),
    "no path": file_value(path=""),
    "no rows": value(physical_rows=0),
    "more rows": value(physical_rows=10),
    "fewer rows": value(physical_rows=2),
    "other size": file_value(file_size_bytes=17),
    "no size": file_value(file_size_bytes=0),
    "new row ids": row_ids(100, 101, 102),
    "row ids of others": row_ids(0, 1, 2),
    "fewer row ids": row_ids(100, 101),
    "more row ids": row_ids(100, 101, 102, 103),
    "no row ids in bytes": value(row_id_meta={"Inline": [255, 1, 2]}),
    "unknown base": file_value(base_id=7),
    "file twice": second_file(lambda ids: ids),
    "second file of -2": second_file(lambda ids: [-2 for _ in ids]),
    "second file of -1": second_file(lambda ids: [-1 for _ in ids]),
    "second file unknown": second_file(lambda ids: [99 + field for field in ids]),
    **{
        f"recorded {major}.{minor}": recorded(major, minor)
        for major, minor in ((0, 0), (0, 2), (0, 3), (2, 0), (2, 1), (2, 2), (2, 3), (9, 9))
    },
}

# Files that were written otherwise than the dataset has them.
WRITTEN: dict[str, Callable[[pa.Table], pa.Table]] = {
    "int32": lambda rows: rows.set_column(0, "a", rows["a"].cast(pa.int32())),
    "double": lambda rows: rows.set_column(0, "a", rows["a"].cast(pa.float64())),
    "large_string": lambda rows: rows.set_column(1, "b", rows["b"].cast(pa.large_string())),
    "reordered": lambda rows: rows.select(["b", "a", *rows.column_names[2:]]),
    "renamed": lambda rows: rows.rename_columns(["zz", *rows.column_names[1:]]),
    "one column": lambda rows: rows.select(["a"]),
    "a null": lambda rows: rows.set_column(0, "a", pa.array([1, None, 3])),
}
OTHER_VERSIONS = ("0.1", "2.0", "2.1", "2.2")
DELETIONS = {"good": (1, 1), "more recorded": (1, 2), "none recorded": (1, 0), "beyond": (7, 1)}
NAMES = [
    *ODDITIES,
    *(f"written {name}" for name in WRITTEN),
    *(f"written {version}" for version in OTHER_VERSIONS),
    *(f"written {version} recorded 2.2" for version in ("2.0", "2.1")),
    *(f"deletions {name}" for name in (*DELETIONS, "missing")),
]

# What pylance commits, reads, and reads wrongly; and why.
TWICE = "a field stands in two columns: it renumbers fields and leaves their indices, or takes one"
NULLS = "values that the file has are read as nulls"
WRONG_THERE = {
    "fields without columns": NULLS,
    "column -1": NULLS,
    "column -7": NULLS,
    **{f"recorded 2.{minor}": NULLS for minor in range(4)},
    "recorded 0.3": NULLS,
    "row ids of others": "two rows have one id",
    "fewer row ids": "a row has no id",
    "more row ids": "the row ids cannot be read",
    "no row ids in bytes": "the row ids cannot be read",
    "fewer rows": "the last row of the file is missing",
    "field twice": TWICE,
    "file twice": TWICE,
    "struct without column": TWICE,
    "struct with column": TWICE,
    "written double": "the bytes of a double are read as an integer",
    "written renamed": "a Merge mixes the values of two columns",
}
# Where we commit the same and answer otherwise, as pylance loses the rows.
OTHER_ROWS = {"no rows"}


def odd_fragment(name: str, uri: str, base: str, fragment_id: int) -> Json:
    rows, version, _ = BASES[base]
    rows = rows.slice(0, 3)
    kind, _, which_one = name.partition(" ")
    if kind == "written" and which_one in WRITTEN:
        rows = WRITTEN[which_one](rows)
    elif kind == "written":
        version = which_one.split()[0]
    if kind not in ("written", "deletions"):
        (fragment,) = lance.fragment.write_fragments(
            rows, uri, mode="append", data_storage_version=version
        )
        content: Json = fragment.to_json()
        ODDITIES[name](content)
        return content
    elsewhere = f"{uri}_elsewhere"
    written = lance.write_dataset(rows, elsewhere, data_storage_version=version)
    content = written.get_fragments()[0].metadata.to_json()
    shutil.copy(f"{elsewhere}/data/{content['files'][0]['path']}", f"{uri}/data/")
    if name.endswith("recorded 2.2"):
        recorded(2, 2)(content)
    if kind == "deletions":
        offset, count = DELETIONS.get(which_one, (1, 1))
        if which_one != "missing":
            write_deletions(f"{uri}/_deletions/{fragment_id}-1-5.arrow", offset)
        content["deletion_file"] = {
            "file_type": "array",
            "id": 5,
            "read_version": 1,
            "num_deleted_rows": count,
            "base_id": None,
        }
    return content


def write_deletions(path: str, offset: int) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    with ipc.new_file(path, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([offset], pa.uint32())], schema=schema))


# --- operations -----------------------------------------------------------------------------------

OPERATIONS = (
    "append",
    "overwrite",
    "create",
    "update",
    "update with new",
    "delete",
    "merge",
    "merge with new",
    "rewrite",
    "replace data",
    "batch",
)
CHANGES_1 = ("update", "delete", "merge", "replace data")  # the others add fragment 2


def operation(module: Any, name: str, uri: str, content: Json) -> Any:
    operations = module.LanceOperation

    def fragment(content: Json, fragment_id: int = 0) -> Any:
        return module.FragmentMetadata.from_json(json.dumps({**content, "id": fragment_id}))

    dataset = module.dataset(uri)
    first, second = (
        fragment(stored.metadata.to_json(), stored.fragment_id)
        for stored in lance.dataset(uri).get_fragments()
    )
    if name == "append":
        return operations.Append([fragment(content)])
    if name in ("overwrite", "create"):
        return operations.Overwrite(lance.dataset(uri).schema, [fragment(content)])
    if name == "update":
        return operations.Update(updated_fragments=[fragment(content, 1)], new_fragments=[])
    if name == "update with new":
        return operations.Update([1], [], [fragment(content)])
    if name == "delete":
        return operations.Delete([fragment(content, 1)], [], "true")
    if name == "merge":
        return operations.Merge([first, fragment(content, 1)], dataset.lance_schema)
    if name == "merge with new":
        return operations.Merge([first, second, fragment(content, 2)], dataset.lance_schema)
    if name == "rewrite":
        return operations.Rewrite([operations.RewriteGroup([first], [fragment(content)])], [])
    group = operations.DataReplacementGroup(1, fragment(content).files[0])
    return operations.DataReplacement([group])


def commit(module: Any, name: str, uri: str, content: Json) -> None:
    if name == "batch":
        change = operation(module, "append", uri, content)
        transaction = module.Transaction(1, change, "0" * 32)
        module.LanceDataset.commit_batch(uri, [transaction])
        return
    change = operation(module, name, uri, content)
    if name == "create":
        shutil.rmtree(f"{uri}/_versions")
        module.LanceDataset.commit(uri, change)
    else:
        module.LanceDataset.commit(uri, change, read_version=1)


# --- cells ----------------------------------------------------------------------------------------


def cells() -> list[tuple[str, str, str]]:
    without_file = ("no file", *(oddity for oddity in NAMES if oddity.startswith("deletions")))
    every = [
        (base, name, oddity)
        for base, name, oddity in product(BASES, OPERATIONS, NAMES)
        if name != "replace data" or oddity not in without_file
    ]
    count = min(len(every), round(CELLS_OF_CI * SCALE))
    return random.Random(SEED).sample(every, count)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bases")
    for name, (rows, version, stable_row_ids) in BASES.items():
        lance.write_dataset(
            rows,
            str(folder / name),
            max_rows_per_file=3,
            data_storage_version=version,
            enable_stable_row_ids=stable_row_ids,
        )
    yield folder
    shutil.rmtree(folder)


def test_odd_fragments_are_committed_as_by_pylance_or_refused(bases: Path, tmp_path: Path) -> None:
    print(f"LANCE_NB_TEST_SEED={SEED}")
    failures = []
    for number, (base, name, oddity) in enumerate(cells()):
        outcomes = []
        for module in (lance_nb, lance):
            uri = f"{tmp_path}/{number}_{module.__name__}"
            shutil.copytree(bases / base, uri)
            content = odd_fragment(oddity, uri, base, 1 if name in CHANGES_1 else 2)
            change = partial(commit, module, name, uri, content)
            outcomes.append(outcome(change, uri))
        ours, theirs = outcomes
        problem = judge(
            ours,
            theirs,
            is_wrong_there=oddity in WRONG_THERE,
            has_other_rows=oddity in OTHER_ROWS,
        )
        if problem is not None:
            failures.append(f"{base} | {name} | {oddity}: {problem}")
        for path in tmp_path.iterdir():
            shutil.rmtree(path)
    assert not failures, "\n".join(failures)
