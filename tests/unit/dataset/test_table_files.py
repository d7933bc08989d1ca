"""Texts in exported CSV are no formulas for a spreadsheet; everything else is as it was stored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lance_nb.dataset.table_files import without_formulas, write_file

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x"]
TEXTS = ["", "a=1", "'=1", " =1", "a\n=1", "1-1", "größer", None]


def written(path: Path, columns: dict[str, pa.Array], **options: bool) -> list[dict[str, object]]:
    table = pa.table(columns)
    assert write_file(path, table.to_reader(), **options) == table.num_rows
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(table.schema.names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    read = csv.read_csv(path, convert_options=convert, parse_options=parse)
    return list(read.to_pylist())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_texts_that_a_spreadsheet_would_run_begin_with_an_apostrophe(
    kind: pa.DataType, tmp_path: Path
) -> None:
    texts = pa.array(FORMULAS + TEXTS).cast(kind)
    rows = written(tmp_path / "x.csv", {"a": texts, "n": pa.array(range(len(texts)))})

    assert [one["a"] for one in rows] == [*(f"'{text}" for text in FORMULAS), *TEXTS]


def test_dictionaries_and_names_of_columns_are_texts_too(tmp_path: Path) -> None:
    column = pa.array([*FORMULAS, *TEXTS, "=1+1"]).dictionary_encode()

    found = without_formulas(column).to_pylist()
    write_file(tmp_path / "x.csv", pa.table({"=cmd()": [1], "id": [2]}).to_reader())

    assert found == [*(f"'{text}" for text in FORMULAS), *TEXTS, "'=1+1"]
    assert (tmp_path / "x.csv").read_text() == '"\'=cmd()","id"\n1,2\n'


def test_bytes_that_are_no_text_stay(tmp_path: Path) -> None:
    column = pa.array([b"\xff=", b"=\xff", b"\xef\xbc", b"", None])

    assert without_formulas(column).to_pylist() == [b"\xff=", b"'=\xff", b"\xef\xbc", b"", None]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    columns = {"i": pa.array([-1, 2]), "f": pa.array([-0.5, 1.0]), "t": pa.array(["-1", "+2"])}
    write_file(tmp_path / "x.csv", pa.table(columns).to_reader())

    assert (tmp_path / "x.csv").read_text() == '"i","f","t"\n-1,-0.5,"\'-1"\n2,1,"\'+2"\n'


def test_who_asks_for_it_gets_the_texts_as_they_are(tmp_path: Path) -> None:
    rows = written(tmp_path / "x.csv", {"a": pa.array(FORMULAS)}, formulas=True)

    assert [one["a"] for one in rows] == FORMULAS


def test_other_formats_hold_what_is_stored(tmp_path: Path) -> None:
    table = pa.table({"=a": FORMULAS})
    write_file(tmp_path / "x.parquet", table.to_reader())
    write_file(tmp_path / "x.arrow", table.to_reader())

    assert parquet.read_table(tmp_path / "x.parquet") == table
    assert pa.ipc.open_file(tmp_path / "x.arrow").read_all() == table
