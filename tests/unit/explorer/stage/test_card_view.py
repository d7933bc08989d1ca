from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb.explorer.stage.card_view import stage_code
from lance_nb.explorer.stage.edit_forms import EditForm
from tests.support.explorer_samples import EVERY
from tests.unit.explorer.conftest import MORE


@pytest.mark.parametrize(("verb", "args", "rows"), EVERY)
def test_the_python_line_does_the_same(
    verb: str, args: dict[str, Any], rows: int | None, tmp_path: Any
) -> None:
    data = pa.table({"id": range(20), "price": [float(one) for one in range(20)]})
    ds = lance_nb.write_dataset(data, tmp_path / "a.lance", max_rows_per_file=10)
    line = stage_code(EditForm.of(verb, args), "why")["python"]
    names = {"ds": ds, "lance_nb": lance_nb, "pa": pa, "more": MORE}
    eval(line, names | {"timedelta": dt.timedelta})  # noqa: S307 - our own line
    if rows is not None:
        found = lance_nb.dataset(tmp_path / "a.lance")
        assert (found.version, found.count_rows()) == (2, rows)


ON_SPARK: list[tuple[str, dict[str, Any], str, int]] = [
    ("append", {"source": "more.parquet"}, "append(ds, 'more.parquet'", 22),
    ("upsert", {"source": "more", "on": ["id"]}, "upsert(ds, more, 'id'", 22),
    ("delete", {"where": "id < 3"}, "delete(ds, 'id < 3'", 17),
    ("update", {"set": {"price": "0"}, "where": "id < 3"},
     "update(ds, {'price': '0'}, 'id < 3'", 20),
    ("update", {"set": {"price": "0"}}, "update(ds, {'price': '0'}", 20),
    ("compact", {"target_rows_per_fragment": 1000},
     "compact(ds, compaction={'target_rows_per_fragment': 1000}", 20),
    ("compact", {}, "compact(ds", 20),
    ("add_column", {"name": "twice", "sql": "price * 2"},
     "backfill(ds, {'twice': 'price * 2'}", 20),
]  # fmt: skip


@pytest.mark.parametrize("case", ON_SPARK, ids=lambda case: case[2])
def test_the_line_of_work_on_spark_names_the_engine(
    case: tuple[str, dict[str, Any], str, int], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, args, line, rows = case
    monkeypatch.chdir(tmp_path)
    parquet.write_table(MORE, "more.parquet")
    data = pa.table({"id": range(20), "price": [float(one) for one in range(20)]})
    ds = lance_nb.write_dataset(data, "a.lance", max_rows_per_file=10)
    code = stage_code(EditForm.of(verb, args), "why", "spark")
    assert code["python"] == f"lance_nb.spark.{line}, message='why', engine='spark')"
    assert code["magic"] == stage_code(EditForm("edits", {}))["magic"]
    here = code["python"].replace("engine='spark'", "engine='local'")
    eval(here, {"ds": ds, "lance_nb": lance_nb, "more": MORE})  # noqa: S307 - our own line
    found = lance_nb.dataset("a.lance")
    assert (found.version, found.count_rows()) == (2, rows)
    assert found.versions()[-1]["metadata"]


def test_work_without_tasks_has_the_same_line_everywhere() -> None:
    for verb, args in (("restore", {"version": "1"}), ("drop_columns", {"columns": ["a"]})):
        form = EditForm.of(verb, args)
        assert stage_code(form, "", "spark") == stage_code(form)


@pytest.mark.parametrize(
    ("verb", "args", "line"),
    [
        ("delete", {"where": "name = 'x'"}, "%lance stage delete \"name = 'x'\""),
        ("update", {"set": {"a": "b + 1"}, "where": "a < 3"},
         "%lance stage update 'a=b + 1' --where 'a < 3'"),
        ("cleanup", {"keep": 3, "older_than": 2.5},
         "%lance clean --older-than 2.5 --keep 3 --really"),
        ("compact", {"target_rows_per_fragment": 5}, "%lance compact --target-rows 5"),
        ("index", {"column": "a", "kind": "INVERTED"},
         "%lance index create a --type INVERTED --set with_position=True"),
        ("index", {"column": "v", "kind": "IVF_FLAT", "metric": "dot"},
         "%lance index create v --type IVF_FLAT --set metric=dot"),
        ("tag", {"action": "move", "name": "v1", "ref": "HEAD~1"}, "%lance tag move v1 HEAD~1"),
        ("add_column", {"name": "a", "sql": "b"}, "%lance status"),
    ],
)  # fmt: skip
def test_the_magic_line_is_one_that_exists(verb: str, args: dict[str, Any], line: str) -> None:
    assert stage_code(EditForm.of(verb, args))["magic"] == line


def python(verb: str, **args: Any) -> str:
    return stage_code(EditForm.of(verb, args))["python"]


def test_files_refs_and_types_are_written_out() -> None:
    assert python("append", source="a.parquet") == "lance_nb.spark.append(ds, 'a.parquet')"
    assert "append(pyarrow.csv.read_csv('a.csv'))" in python("append", source="a.csv")
    assert "upsert(pyarrow.parquet.read_table('a" in python("upsert", source="a.parquet", on="id")
    assert python("append", source="s3://b/x.lance").startswith("lance_nb.spark.append(ds, 's3:")
    assert python("branch", action="create", name="d", ref="main:3").endswith("'d', (None, 3))")
    assert python("tag", action="create", name="v", ref="dev:3").endswith("'v', ('dev', 3))")
    assert "restore(ds.checkout_version('v1').version)" in python("restore", version="v1")
    assert python("upsert", source="df", on=["a", "b"]).endswith("(df, on=['a', 'b']).commit()")
    cast = python("cast_column", column="t", type="timestamp[us]")
    assert "'data_type': pa.type_for_alias('timestamp[us]')" in cast
