"""Reading loads nothing that it does not need: pandas alone would cost 0.4 s and 60 MiB."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "pylance_14_0_2"
# A preview of the current file version needs none of these: each would make every start slower.
NOT_FOR_A_PREVIEW = (
    "pandas", "sqlglot", "IPython", "logging", "importlib.resources", "tempfile",
    "pyroaring", "pyarrow.compute", "pyarrow.dataset", "concurrent.futures",
    "google.protobuf.descriptor_pb2",
    *(f"lance_nb.{name}" for name in (
        "dataset.file_reader", "encodings.v2_0.array_encodings", "encodings.describe",
        "encodings.page_encoder", "encodings.compression.general", "encodings.kernels.fsst_encode",
        "encodings.layouts.full_zip_layout", "file.v2_0_reader",
        "file.v0_1_reader", "file.writer", "format.deletion_vector",
        "format.index_metadata", "format.manifest_history", "format.refs",
        "format.transaction_summary", "format.row_sequences", "storage.fsspec_store", "table.blobs",
        "table.deletions", "table.filtered_scan", "table.history", "table.indices",
        "table.metadata_tables", "table.nearest", "table.ordering", "table.predicate",
        "table.row_ids", "table.computed_columns", "table.take", "transactions.commit",
        "transactions.registry",
    )),
)  # fmt: skip
PREVIEW_MODULES_MAX = 125  # of ours; each costs 0.2 to 0.5 ms
HEAVY = ("pandas", "sqlglot", "pyarrow.dataset", "IPython")
NOTEBOOK = ("ipywidgets", "anywidget", "pyspark")


def test_modules_that_are_not_for_a_preview_exist() -> None:
    """A module that was renamed would never be found loaded."""
    assert [name for name in NOT_FOR_A_PREVIEW if find_spec(name) is None] == []


FILTERS = (
    "id > 3", "id = 3 OR id = 4", "id % 7 = 3", "id IN (1, 2, 3)", "NOT id < 5", "id IS NOT NULL",
)  # fmt: skip


def test_reading_and_simple_filters_load_no_heavy_package() -> None:
    """pyarrow imports pandas to convert a Python value to a scalar: literals are built without."""
    places = [str(GOLDEN / f"{name}.lance") for name in ("history", "types_2_2", "stable_ids")]
    code = (
        f"import sys, lance_nb; datasets = [lance_nb.dataset(place) for place in {places!r}];"
        "[(d.head(3), d.to_table(), d.take([2, 0, 2]),"
        " d.to_table(columns=['_rowid', '_rowaddr', '_rowoffset']),"
        " d.version_info(d.version), d.stats(), d.tags.list(), d.history(), repr(d))"
        " for d in datasets];"
        f"print([n for n in {(*HEAVY, *NOTEBOOK)!r} if n in sys.modules]);"
        f"[(d.count_rows(text), d.to_table(filter=text), d.to_table(filter=text, limit=2))"
        f" for d in datasets[:2] for text in {FILTERS!r}];"
        f"print([n for n in {(*HEAVY, 'numpy.ma', 'lance_nb.table.predicate.binder')!r}"
        " if n in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.split() == ["[]", "[]"]


def test_a_filter_loads_no_search_of_indices_where_there_are_none() -> None:
    """It is half of what the first filter of a process imports."""
    code = (
        f"import sys, lance_nb; d = lance_nb.dataset({str(GOLDEN / 'types_2_2.lance')!r});"
        "print(d.list_indices(), d.count_rows('id > 3') > 0, 'lance_nb.indices' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.split() == ["[]", "True", "False"]


def test_searches_by_indices_load_no_heavy_package(tmp_path: Path) -> None:
    """The first search of a process took 0.4 s, most of it for pandas."""
    uri = str(tmp_path / "d.lance")
    vectors = np.random.default_rng(2).random(400, np.float32)
    texts = [f"running fox {number}" for number in range(100)]
    data = {"n": range(100), "k": ["a", "b"] * 50, "t": texts, "u": [*texts[:99], "straße"]}
    vector = pa.FixedSizeListArray.from_arrays(vectors, 4)
    ds = lance_nb.write_dataset(pa.table({**data, "v": vector}), uri)
    ds.create_scalar_index("n", "BTREE")
    ds.create_scalar_index("k", "BITMAP")
    ds.create_scalar_index("t", "INVERTED", with_position=True)
    ds.create_scalar_index("u", "INVERTED", stem=False)
    for kind in ("IVF_FLAT", "IVF_PQ", "IVF_SQ"):
        pieces = {"num_sub_vectors": 2, "num_bits": 4} if kind == "IVF_PQ" else {}
        ds.create_index("v", kind, kind, num_partitions=2, **pieces)
    filters = ("n = 7", "n BETWEEN 3 AND 9 AND k = 'a'", "k IN ('a', 'c')", "n < 5 OR n > 90")
    code = (
        "import sys, lance_nb\n"
        f"ds = lance_nb.dataset({uri!r})\n"
        f"rows = [ds.to_table(['n'], filter=one).num_rows for one in {filters!r}]\n"
        f"counts = [ds.count_rows(one) for one in {filters!r}]\n"
        "assert rows == counts and all(rows), rows\n"
        "queries = (lance_nb.MatchQuery('fox run', 't'), lance_nb.PhraseQuery('fox 7', 't'),\n"
        "           lance_nb.MatchQuery('Straße', 'u'))\n"
        "for query in queries:\n"
        "    assert ds.to_table(['n', '_score'], full_text_query=query, limit=5).num_rows\n"
        "for options in ({}, {'nprobes': 2, 'refine_factor': 3}, {'use_index': False}):\n"
        "    near = {'column': 'v', 'q': [0.1, 0.2, 0.3, 0.4], 'k': 3, **options}\n"
        "    assert ds.to_table(['n', '_distance'], nearest=near).num_rows == 3\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.split() == ["[]"]


# What the first append of a process does without: together they would double what it costs.
NOT_FOR_AN_APPEND = (
    "pandas", "sqlglot", "pyarrow.fs", "pyarrow.dataset",
    *(f"lance_nb.{name}" for name in (
        "table.predicate", "table.filtered_scan", "table.blobs", "transactions.rebase",
        "transactions.conflict_grid", "writing.rewriting", "writing.deleting",
        "writing.upsert_source",
        "transactions.operations.rewrite", "transactions.operations.create_index",
        "transactions.operations.clone", "transactions.operations.data_replacement",
    )),
)  # fmt: skip


def test_an_append_loads_what_it_needs_and_little_else(tmp_path: Path) -> None:
    assert [name for name in NOT_FOR_AN_APPEND if find_spec(name) is None] == []
    uri = str(tmp_path / "a.lance")
    code = (
        "import sys, pyarrow as pa, lance_nb\n"
        "rows = pa.RecordBatch.from_arrays([pa.nulls(3, pa.int64())], ['a'])\n"
        "table = pa.Table.from_batches([rows])\n"
        f"lance_nb.write_dataset(table, {uri!r})\n"
        f"lance_nb.write_dataset(table, {uri!r}, mode='append')\n"
        f"print([n for n in {NOT_FOR_AN_APPEND!r} if n in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.strip() == "[]"


# What the first use of each verb in a process loads, beside what ``import lance_nb`` does: at most
# so many modules of ours, each of which costs 0.2 to 0.4 ms, and no heavy package.
VERBS = {
    "head": ("d.head(2)", 16),
    "take": ("d.take([2, 0])", 35),
    "filter": ("d.to_table(filter='a = 2')", 45),
    "count": ("d.count_rows(\"s LIKE '%x%' AND a < 9\")", 40),
    "versions": ("d.versions()", 12),
    "append": ("lance_nb.write_dataset(table, d.uri, mode='append')", 115),
    "delete": ("d.delete('a % 5 = 2')", 130),
    "update": ("d.update({'a': '7'}, where='a = 2')", 165),
    "upsert numbers": ("d.merge_insert('a')UPSERT", 160),
    "upsert texts": ("d.merge_insert('s')UPSERT", 160),
    "tag": ("d.tags.create('t', 1)", 80),
    "branch": ("d.create_branch('b')", 80),
    "restore": ("d.restore()", 75),
    "compact": ("d.optimize.compact_files()", 160),
    "index": ("d.create_scalar_index('a', 'BTREE')", 170),
}
UPSERT = ".when_matched_update_all().when_not_matched_insert_all().execute(table)"
NOT_FOR_A_FIRST_USE = (
    *HEAVY, *NOTEBOOK, "pyarrow.compute", "duckdb", "obstore", "s3fs", "lance_nb.file.v0_1_reader",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_the_first_use_of_a_verb_loads_what_it_needs(verb: str, tmp_path: Path) -> None:
    line, modules_max = VERBS[verb]
    table = pa.table({"a": [1, 2, 3], "s": ["x", None, "z"]})
    lance_nb.write_dataset(table, tmp_path / "a.lance")
    with (
        pa.OSFile(str(tmp_path / "rows"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as out,
    ):
        out.write_table(table)
    code = (
        "import sys, pyarrow as pa, lance_nb\n"
        f"table = pa.ipc.open_file({str(tmp_path / 'rows')!r}).read_all()\n"
        "def of_ours(): return sum(name.startswith('lance_nb') for name in sys.modules)\n"
        "before = of_ours()\n"
        f"d = lance_nb.dataset({str(tmp_path / 'a.lance')!r})\n"
        f"{line.replace('UPSERT', UPSERT)}\n"
        f"print(of_ours() - before, [n for n in {NOT_FOR_A_FIRST_USE!r} if n in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    count, _, heavy = done.stdout.strip().partition(" ")
    assert heavy == "[]"
    assert int(count) <= modules_max


def test_the_first_explorer_of_a_kernel_loads_no_package_for_data_frames_or_sql() -> None:
    """Its picture took 0.25 s longer with pandas; sqlglot is for checks and typed filters."""
    names = ("pandas", "pyarrow.compute", "sqlglot", "duckdb", "pyspark", "pyarrow.dataset")
    code = (
        "import sys, lance_nb\n"
        f"explorer = lance_nb.explore({str(GOLDEN / 'history.lance')!r})\n"
        "picture = explorer.to_svg()\n"
        f"print(picture[:4], [name for name in {names!r} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert done.stdout.strip() == "<svg []"


@pytest.mark.parametrize("name", ["history", "types_2_2"])
def test_a_preview_loads_what_it_needs_and_little_else(name: str) -> None:
    code = (
        f"import sys, lance_nb; d = lance_nb.dataset({str(GOLDEN / f'{name}.lance')!r}, 1);"
        "column = next(f.name for f in d.schema if str(f.type) in ('int32', 'int64', 'string'));"
        "d.head(3, columns=[column]); len(d), d.schema;"
        f"print([n for n in {NOT_FOR_A_PREVIEW!r} if n in sys.modules]);"
        "print(len([n for n in sys.modules if n.startswith('lance_nb')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    loaded, count = done.stdout.split("\n")[:2]
    assert loaded == "[]"
    assert int(count) <= PREVIEW_MODULES_MAX


# What a simple verb of the command does without; with them it takes twice the processor time.
NOT_FOR_A_VERB = (
    "pandas", "sqlglot", "IPython", "ipywidgets", "anywidget", "pyspark", "duckdb", "obstore",
    "lance_nb.explorer.widget", "lance_nb.spark",
)  # fmt: skip
SIMPLE_VERBS = (
    "open", "show", "schema", "head", "fragments", "indices", "log", "log --graph", "diff 1 2",
    "branch", "tag", "space",
)  # fmt: skip
COMMAND_MODULES_MAX = 185  # of ours, loaded before a verb runs


def test_a_simple_verb_of_the_command_loads_little() -> None:
    """pyarrow imports pandas, where it is installed, with the first list that it converts."""
    assert [name for name in NOT_FOR_A_VERB if find_spec(name) is None] == []
    uri = str(GOLDEN / "history.lance")
    lines = [[verb, uri, *rest] for verb, *rest in map(str.split, SIMPLE_VERBS)]
    code = (
        "import sys\n"
        "from lance_nb.magic.command_line import main\n"
        "count = len([name for name in sys.modules if name.startswith('lance_nb')])\n"
        "out, sys.stdout = sys.stdout, sys.stderr\n"
        f"for line in {[*lines, ['tables', str(GOLDEN)]]!r}:\n"
        "    sys.argv[1:] = line\n"
        "    status = main()\n"
        f"    found = [name for name in {NOT_FOR_A_VERB!r} if name in sys.modules]\n"
        "    assert not status and not found, (line, status, found)\n"
        "print(count, file=out)\n"
        "import pandas, pyarrow\n"
        "print(len(pyarrow.table({'a': [1, 2]}).to_pandas()), file=out)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240
    )

    assert done.returncode == 0, done.stderr[-1000:]
    count, rows = map(int, done.stdout.split())
    assert count <= COMMAND_MODULES_MAX
    assert rows == 2  # pandas is used where it is asked for
