"""``%lance search`` and ``%lance like``, and the line in Python that finds the same."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.magic.context import MagicContext
from lance_nb.magic.verbs import searching
from tests.unit.magic.conftest import Lance


@pytest.fixture
def points(lance: Lance, shell: InteractiveShell) -> lance_nb.LanceDataset:
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(rng.normal(size=1200).astype(np.float32)), 4,
        mask=pa.array(np.arange(300) == 5),
    )  # fmt: skip
    table = pa.table(
        {"id": np.arange(300), "name": [f"it's {n}" for n in range(300)], "v": vectors}
    )
    made = lance_nb.write_dataset(table, f"memory://like-{uuid4().hex}/points")
    made.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2, max_iters=2)
    shell.user_ns["points"] = made
    lance("open points --no-display")
    return made


def value(shell: InteractiveShell, line: str) -> pa.Table:
    shell.run_line_magic("lance", f"{line} -o found --no-display")
    found: pa.Table = shell.user_ns["found"]
    return found


def test_the_row_itself_is_the_nearest(
    points: lance_nb.LanceDataset, shell: InteractiveShell
) -> None:
    for row in ("7", "id=7", '"name=it\'s 7"'):
        found = value(shell, f"like {row}")
        assert found.column_names == ["id", "name", "_distance"]
        assert found["id"][0].as_py() == 7
        assert found["_distance"][0].as_py() == pytest.approx(0, abs=1e-6)
        assert found.num_rows == 10


def test_the_python_line_finds_the_same(
    points: lance_nb.LanceDataset, shell: InteractiveShell, lance: Lance
) -> None:
    for options in ("", "--exact", "--metric cosine", "--where 'id > 100' --columns id -n 3"):
        said = str(lance(f"like id=7 --by v {options}"))
        (line,) = [one for one in said.splitlines() if one.startswith("lance_nb.dataset(")]
        again = eval(line, {"lance_nb": lance_nb})  # noqa: S307 - a line of ours
        assert again.equals(value(shell, f"like id=7 --by v {options}")), options


def test_what_is_wrong_is_said(points: lance_nb.LanceDataset, lance: Lance) -> None:
    for line, words in (
        ("like 7 --by name", "has no vectors"), ("like 5", "has no vector"), ("like id=x", "int64"),
        ("like 99999", "99999"), ("like no=1", "no column 'no'"), ("like id=999", "no row"),
        ("like 7 --by none", "none"),
    ):  # fmt: skip
        with pytest.raises(Exception, match=words):
            lance(line)


def test_search_marks_words_and_shows_the_line(tmp_path: Path) -> None:
    data = pa.table({"id": range(3), "t": ["a quick Fox", "no", "fox fox"], "u": ["fox"] * 3})
    ds = lance_nb.write_dataset(data, tmp_path / "d.lance")
    scan = ds.scanner(full_text_query={"query": "fox", "columns": ["t"]})
    assert scan.searched_columns == ["t"]
    assert scan.word_places("t", "a quick Fox") == [(8, 11)]
    with pytest.raises(InvalidInputError, match="no full-text query in column 'u'"):
        scan.word_places("u", "fox")
    context = MagicContext()
    context.set_dataset(ds)
    args = Namespace(text="fox", column="t", limit=5, columns=None, where=None)
    result = searching.search.run(context, args)
    assert result.value["t"].to_pylist() == ["fox fox", "a quick Fox"]
    assert result.value["_score"].to_pylist() == sorted(result.value["_score"].to_pylist())[::-1]
    shown = result.picture.text
    assert "»fox« »fox«" in shown
    assert "a quick »Fox«" in shown
    assert "full_text_query=" in shown
