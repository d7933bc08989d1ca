"""Records that do not parse or do not fit: an error, left out, or kept as text."""

from __future__ import annotations

import gzip
import io
import json
import time
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.spark.tasks import bad_records
from lance_nb.spark.tasks.bad_records import converted_text, parsed_csv, parsed_json

TEXT = "_corrupt_record"
COLUMNS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("x", pa.float32())])
KEPT = COLUMNS.append(pa.field(TEXT, pa.string()))
CSV = 'id,name,x\n1,a,1.5\nx2,"b,""c",2.5\n3,d\n4,,NULL\n5,e,abc\n6,f,7,8\n'
JSON = """{"id": 1, "name": "a", "x": 1.5}
{"id":
5
{"id": "k", "name": "b"}
{"id": 2, "y": 3}

{"id": 300000000000}
{"id": 7}
"""


def made(folder: Path, schema: pa.Schema) -> str:
    uri = str(folder / "t.lance")
    lance_nb.write_dataset(schema.empty_table(), uri)
    return uri


def source(folder: Path, name: str, text: str) -> str:
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(folder / name)


def appended(uri: str, file: str, action: str, **options: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = spark.append(uri, file, bad_records=action, engine="local", **options)
    return dataset, [str(one.message) for one in caught]


def counted(dataset: Any) -> Any:
    known = dataset.read_transaction(dataset.version).transaction_properties
    return json.loads(known["lance_nb.spark.bad_records"])


@pytest.mark.parametrize("action", ["column", "PERMISSIVE"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_bad_lines_of_csv_are_kept_as_text(tmp_path: Path, action: str, name: str) -> None:
    file = source(tmp_path, name, CSV)
    dataset, said = appended(made(tmp_path, KEPT), file, action)
    rows = dataset.to_table().to_pylist()
    good = [row for row in rows if row[TEXT] is None]
    assert [tuple(row.values()) for row in good] == [(1, "a", 1.5, None), (4, "", None, None)]
    bad = [row for row in rows if row[TEXT] is not None]
    assert [row[TEXT] for row in bad] == ['x2,"b,""c",2.5', "5,e,abc", "3,d", "6,f,7,8"]
    assert {row[name] for row in bad for name in COLUMNS.names} == {None}
    assert rows.index(bad[0]) == 1  # in the place of its row
    assert counted(dataset)["count"] == 4
    assert counted(dataset)["files"][0]["file"] == file
    assert said[0].startswith("bad records, 4 in files: 1; the first: 'x2,")


@pytest.mark.parametrize("action", ["drop", "DROPMALFORMED"])
def test_bad_records_are_left_out_and_counted(tmp_path: Path, action: str) -> None:
    file = source(tmp_path, "rows.csv", CSV)
    dataset, said = appended(made(tmp_path, COLUMNS), file, action)
    assert dataset.to_table()["id"].to_pylist() == [1, 4]
    assert counted(dataset)["count"] == 4
    assert len(said) == 1


def test_the_first_bad_record_is_an_error_by_default(tmp_path: Path) -> None:
    uri = made(tmp_path, COLUMNS)
    for action in ("raise", "FailFast"):
        with pytest.raises(InvalidInputError, match="Expected 3 columns, got 2"):
            spark.append(uri, source(tmp_path, "rows.csv", CSV), bad_records=action)
    with pytest.raises(InvalidInputError, match="bad_records is 'raise'"):
        spark.append(uri, source(tmp_path, "rows.csv", CSV), bad_records="ignore")
    assert lance_nb.dataset(uri).version == 1


def test_bad_lines_of_json_are_kept_as_text(tmp_path: Path) -> None:
    dataset, _ = appended(made(tmp_path, KEPT), source(tmp_path, "rows.json", JSON), "column")
    rows = dataset.to_table().to_pylist()
    assert [row["id"] for row in rows if row[TEXT] is None] == [1, 7]
    assert {row[TEXT] for row in rows if row[TEXT]} == {
        '{"id":', "5", '{"id": "k", "name": "b"}', '{"id": 2, "y": 3}', '{"id": 300000000000}',
    }  # fmt: skip


def test_a_new_dataset_gets_the_column(tmp_path: Path) -> None:
    file = source(tmp_path, "rows.json", JSON)
    with pytest.warns(UserWarning, match="bad records, 3 in files: 1;"):
        dataset = spark.write(file, tmp_path / "n.lance", bad_records="column")
    assert dataset.schema.names == ["id", "name", "x", "y", TEXT]
    assert dataset.count_rows(f"{TEXT} IS NULL") == 4
    with pytest.warns(UserWarning, match="bad records, 2 in files: 1;"):
        made_of_csv = spark.write(
            source(tmp_path, "rows.csv", CSV), tmp_path / "c.lance",
            bad_records="column", bad_record_column="broken",
        )  # fmt: skip
    assert made_of_csv.schema.names[-1] == "broken"
    assert made_of_csv.count_rows() == 6


def test_rows_that_cannot_be_cast_are_bad_records(tmp_path: Path) -> None:
    table = pa.table({"id": ["1", "no", "300"], "day": ["2026-11-28", "2026-11-28", "x"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    schema = pa.schema([("id", pa.int16()), ("day", pa.date32()), (TEXT, pa.string())])
    uri, file = made(tmp_path, schema), str(tmp_path / "rows.parquet")
    with pytest.raises(SchemaMismatchError):
        appended(uri, file, "column")  # nothing is cast unless asked
    dataset, _ = appended(uri, file, "column", cast=True)
    assert dataset.to_table().column(TEXT).to_pylist() == [
        None, '{"id": "no", "day": "2026-11-28"}', '{"id": "300", "day": "x"}',
    ]  # fmt: skip
    assert dataset.count_rows("id = 1") == 1


def test_partitions_keep_their_value_in_bad_records(tmp_path: Path) -> None:
    (tmp_path / "in/day=7").mkdir(parents=True)
    source(tmp_path / "in/day=7", "rows.csv", CSV)
    uri = made(tmp_path, KEPT.append(pa.field("day", pa.int64())))
    dataset, _ = appended(uri, str(tmp_path / "in"), "column")
    assert dataset.to_table()["day"].to_pylist() == [7] * 6


def test_what_cannot_hold_bad_records_is_refused(tmp_path: Path) -> None:
    file = source(tmp_path, "rows.csv", CSV)
    uri = made(tmp_path, COLUMNS)
    with pytest.raises(SchemaMismatchError, match="bad records as text in column"):
        spark.append(uri, file, bad_records="column")
    with pytest.raises(SchemaMismatchError, match="has type int32"):
        spark.append(uri, file, bad_records="column", bad_record_column="id")
    required = pa.schema([pa.field("id", pa.int32(), nullable=False), *list(KEPT)[1:]])
    strict = str(tmp_path / "strict.lance")
    lance_nb.write_dataset(required.empty_table(), strict)
    with pytest.raises(InvalidInputError, match="'id' must not be null"):
        spark.append(strict, file, bad_records="column")
    own = source(tmp_path, "own.csv", f"id,{TEXT}\n1,a\n")
    with pytest.raises(InvalidInputError, match="a column '_corrupt_record' of its own"):
        spark.append(made(tmp_path / "own", KEPT), own, bad_records="column")


def test_nulls_in_required_columns_are_bad_records(tmp_path: Path) -> None:
    required = pa.schema([pa.field("id", pa.int32(), nullable=False), *list(COLUMNS)[1:]])
    file = source(tmp_path, "rows.csv", "id,name,x\n1,a,1\n,b,2\n")
    dataset, _ = appended(made(tmp_path, required), file, "drop")
    assert dataset.to_table()["id"].to_pylist() == [1]


def test_bytes_that_are_no_text_are_bad_records(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"id,name,x\n1,ok,1\n2,\xff\xfe,2\n")
    (tmp_path / "rows.json").write_bytes(b'{"id": 1, "name": "ok"}\n{"id": 2, \xff}\n')
    for name in ("rows.csv", "rows.json"):
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        dataset, _ = appended(made(folder, KEPT), str(tmp_path / name), "column")
        first, second = dataset.to_table().to_pylist()
        assert first["name"] == "ok"
        assert "\ufffd" in second[TEXT]


TEXTS: dict[str, tuple[pa.DataType, list[str]]] = {
    "int8": (pa.int8(), ["1", "-128", " 7 ", "007", "", "NULL", "n/a"]),
    "uint64": (pa.uint64(), ["0", "18446744073709551615"]),
    "float64": (pa.float64(), ["1", "-1.5e3", ".5", "inf", "-inf", "", "NaN", "nan"]),
    "bool": (pa.bool_(), ["true", "False", "1", "0", ""]),
    "string": (pa.string(), ["a", "", "NULL", " spaced ", "1"]),
    "large_string": (pa.large_string(), ["a", ""]),
    "date": (pa.date32(), ["2026-11-28", ""]),
    "timestamp": (pa.timestamp("us"), ["2026-11-28 12:00:00", "2026-11-28", ""]),
    "decimal": (pa.decimal128(9, 2), ["1.25", "-7", ""]),
    "time": (pa.time32("s"), ["12:00:01", ""]),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_good_values_are_read_as_without_the_option(kind: str) -> None:
    wanted, texts = TEXTS[kind]
    lines = "k,v\n" + "".join(f'k,"{one}"\n' if not one else f"k,{one}\n" for one in texts)
    convert = csv.ConvertOptions(column_types={"v": wanted})
    expected = csv.read_csv(io.BytesIO(lines.encode()), convert_options=convert)["v"]
    ((batch, unparsed),) = parsed_csv(io.BytesIO(lines.encode()), ["k", "v"])
    found, fits = converted_text(batch.column("v"), pa.field("v", wanted))
    assert fits.all()
    assert not unparsed
    assert str(found.to_pylist()) == str(expected.to_pylist())  # NaN equals no NaN


BAD_TEXTS = {
    "int8": ["128", "1.5", "0x", "a", "1 2", "--1"],
    "uint64": ["-1", "18446744073709551616"],
    "float64": ["1,", "a", "1.2.3", "1e"],
    "bool": ["yes", "2"],
    "date": ["2026-13-01", "today"],
    "timestamp": ["12:00", "x"],
    "decimal": ["1.255", "99999999.1", "x"],
    "time": ["25:00:00"],
}


@pytest.mark.parametrize("kind", BAD_TEXTS)
def test_bad_values_are_found_among_good_ones(kind: str) -> None:
    wanted, good = TEXTS[kind]
    texts = [text for bad in BAD_TEXTS[kind] for text in (*good, bad)]
    values = pa.array([one.encode() for one in texts], pa.binary())
    found, fits = converted_text(values, pa.field("v", wanted))
    assert [text for text, fit in zip(texts, fits, strict=True) if not fit] == BAD_TEXTS[kind]
    assert found.filter(pa.array(~fits)).null_count == len(BAD_TEXTS[kind])


def test_lines_are_read_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_records, "BLOCK_BYTES", 64)
    lines = [json.dumps({"id": at}) if at % 7 else f"bad {at}" for at in range(100)]
    schema = pa.schema([("id", pa.int64())])
    found = list(parsed_json(io.BytesIO("\n".join(lines).encode()), schema, "x.json"))
    ids = [one for batch, _ in found for one in batch.column("id").to_pylist()]
    assert ids == [at for at in range(100) if at % 7]
    texts = [text for _, unparsed in found for text in unparsed]
    assert texts == [f"bad {at}" for at in range(0, 100, 7)]
    with pytest.raises(InvalidInputError, match="a line is longer than 64 bytes"):
        list(parsed_json(io.BytesIO(b"x" * 200), schema, "x.json"))


def test_json_of_only_bad_lines_takes_a_moment() -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("s"))])
    deep = b'{"id": ' + b"[" * 100_000
    for line in (b'{"id": ', b'{"id": "k"}', b'{"id": 1.5}', b"[]", b"\xff", deep):
        count = 20_000 if line is not deep else 5
        start = time.process_time()
        ((batch, unparsed),) = parsed_json(io.BytesIO((line + b"\n") * count), schema, "x.json")
        assert (batch.num_rows, len(unparsed)) == (0, count)
        assert time.process_time() - start < 2.5


def test_types_of_a_new_dataset_are_those_of_the_first_line(tmp_path: Path) -> None:
    lines = ["[1]", '{"a": 1}', '{"a": "x"}', '{"a": 2, "b": true}']
    file = source(tmp_path, "rows.json", "\n".join(lines))
    with pytest.warns(UserWarning, match="bad records, 2 in files: 1;"):
        dataset = spark.write(file, tmp_path / "n.lance", bad_records="drop")
    assert dataset.to_table().to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": True}]
    with pytest.raises(InvalidInputError, match="no line is a JSON object"):
        spark.write(
            source(tmp_path, "none.json", "[1]\n5\n"), tmp_path / "o.lance", bad_records="drop"
        )


def test_a_job_with_bad_records_is_resumed(tmp_path: Path) -> None:
    """What tasks found is kept with their results."""
    from lance_nb.spark.journal_json import ResumeOptions, from_json, to_json

    uri = made(tmp_path, KEPT)
    settings = spark.SourceSettings(bad_records="column")
    plan = spark.plan_append(
        lance_nb.dataset(uri), source(tmp_path, "rows.csv", CSV), settings, task_bytes=1
    )
    results = [task.run() for task in plan.tasks]
    assert from_json(to_json(results), ResumeOptions()) == results
    with pytest.warns(UserWarning, match="bad records, 4 in files: 1;"):
        (edit,) = plan.edits(plan.finalized(results))
    assert edit.fragments[0].physical_rows == 6


def test_decimals_keep_their_value() -> None:
    values = pa.array([b"1.10", b"x"], pa.binary())
    found, fits = converted_text(values, pa.field("v", pa.decimal128(5, 2)))
    assert found.to_pylist() == [Decimal("1.10"), None]
    assert fits.tolist() == [True, False]
