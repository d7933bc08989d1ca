from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from pyarrow import parquet

from lance_nb.format.layout import manifest_path
from tests.unit.magic.conftest import Lance, rows


@pytest.fixture(autouse=True)
def opened(lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")


# --- looking


def test_schema_head_fragments_and_indices_are_tables(lance: Lance) -> None:
    assert lance("schema").value.names == ["id", "label", "price"]
    assert lance("head -n 2 v1 --columns id --where 'id > 3'").value == pa.table({"id": [4, 5]})
    assert lance("fragments v1").value.num_rows == 3
    assert lance("indices").data == []


def test_export_writes_files_others_read(lance: Lance, tmp_path: Path) -> None:
    lance(f"export {tmp_path}/x.parquet v1 --where 'id < 4' --columns id,price")
    assert parquet.read_table(tmp_path / "x.parquet")["id"].to_pylist() == [0, 1, 2, 3]
    lance(f"export {tmp_path}/x.csv --columns id")
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 50
    lance(f"export {tmp_path}/y.csv --columns id --formulas")
    assert (tmp_path / "y.csv").read_text() == (tmp_path / "x.csv").read_text()
    with pytest.raises(UsageError, match="the file name must end with"):
        lance(f"export {tmp_path}/x.xls")


# --- history


def test_log_begins_at_a_version(lance: Lance) -> None:
    assert [one.version for one in lance("log v1").value] == [3, 2, 1]


def test_log_says_that_there_are_more_and_what_happened(lance: Lance) -> None:
    short, whole = lance("log v1 -n 2"), lance("log v1 -n 3")
    assert [info.version for info in short.value] == [3, 2]
    assert "there are older versions: log -n NUMBER" in short.picture.text
    assert "older versions" not in whole.picture.text
    assert "Rows added (Append)" in whole.picture.text
    assert whole.data[0]["operation"] == whole.value[0].operation


def test_filters_have_two_names_and_no_expectations_are_explained(
    lance: Lance, tmp_path: Path
) -> None:
    lance(f"export {tmp_path}/a.csv --where 'id < 3'")
    lance(f"export {tmp_path}/b.csv --filter 'id < 3'")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert "expect unique COLUMN" in lance("expect").picture.text


def test_log_graph_draws_branches_and_forks(lance: Lance) -> None:
    lines = lance("log --graph").picture.text.splitlines()[2:]
    nodes = [line for line in lines if "*" in line]
    assert len(nodes) == 9
    fork = next(at for at, line in enumerate(lines) if line == "|/")
    assert "main:3" in lines[fork + 1]
    assert all("dev:" not in line for line in lines[fork:])
    assert sum(line.startswith("| *") for line in lines) == 2


def test_bisect_finds_the_first_version_that_breaks_a_promise(lance: Lance) -> None:
    found = lance("bisect 'label IS NOT NULL'")
    assert (found.value.first_bad, found.value.last_good) == (5, 4)
    assert found.exit_code == 1
    assert lance("bisect 'count(*) < 25'").value.first_bad == 3
    assert lance("bisect 'SELECT max(id) < 45 FROM dataset' --bad v1").value.first_bad is None


def test_bisect_tells_for_how_many_rows_a_filter_is_null(lance: Lance) -> None:
    passing, failing = (
        lance(f"bisect \"label <> 'zz'\" --nulls {how}") for how in ("pass", "fail")
    )
    assert passing.value.first_bad is None
    assert failing.value.first_bad == 5
    for found in (passing, failing):
        assert "null_rows" in found._repr_html_()
        assert "The statement is NULL for" in str(found)
        assert found.data["num_null"] == found.value.num_null > 0
    assert "use --nulls fail" in str(passing)
    assert "null_rows" not in str(lance("bisect 'label IS NOT NULL'"))


# --- refs


def test_branches_are_listed_made_and_deleted(lance: Lance, shell: InteractiveShell) -> None:
    assert [one["branch"] for one in lance("branch").data] == ["dev"]
    lance("branch create mine HEAD~2")
    assert (shell.user_ns["ds"].branch, shell.user_ns["ds"].count_rows()) == ("mine", 50)
    lance("branch delete mine")
    assert shell.user_ns["ds"].branch is None
    with pytest.raises(UsageError, match="needs the name of a branch"):
        lance("branch create")


def test_tags_are_listed_made_moved_and_deleted(lance: Lance, shell: InteractiveShell) -> None:
    lance("tag create mine HEAD~1")
    lance("tag move mine dev")
    found = {one["tag"]: one["version"] for one in lance("tag").data}
    assert found == {"late": "main:7", "v1": "main:3", "mine": "dev:4"}
    lance("tag delete mine")
    assert set(shell.user_ns["ds"].tags.list()) == {"late", "v1"}


def test_a_tag_of_a_version_that_was_deleted_says_so_and_is_deleted(lance: Lance, uri: str) -> None:
    lance("tag create mine dev:4")
    Path(uri, "tree", "dev", manifest_path(4)).unlink()
    with pytest.raises(UsageError, match=r"tag 'mine' names version 4.*move the tag"):
        lance("at mine")
    assert "did not exist any more" in str(lance("tag delete mine"))


def test_restore_makes_a_new_version(lance: Lance, shell: InteractiveShell) -> None:
    lance("restore v1")
    assert (shell.user_ns["ds"].version, shell.user_ns["ds"].count_rows()) == (8, 30)
    with pytest.raises(UsageError, match="on another branch"):
        lance("restore dev:4")


# --- staging


def test_edits_are_staged_previewed_and_committed(lance: Lance, shell: InteractiveShell) -> None:
    shell.user_ns["more"] = rows(50, 55)
    lance("stage append more")
    lance("stage delete 'id < 2'")
    assert lance("status").value.num_rows_after == 52
    assert shell.user_ns["ds"].count_rows() == 49
    lance("commit -m add and drop")
    ds = shell.user_ns["ds"]
    assert (ds.version, ds.count_rows()) == (8, 52)
    assert ds.history(1)[0].message == "add and drop"


def test_an_update_is_staged_with_assignments(lance: Lance, shell: InteractiveShell) -> None:
    lance("stage update price='price * 2' label=upper(label) --where 'id = 10'")
    lance("commit")
    assert shell.user_ns["ds"].to_table(filter="id = 10").to_pylist() == [
        {"id": 10, "label": "L1", "price": 20.0}
    ]


def test_files_are_staged_too_and_discarding_leaves_nothing(
    lance: Lance, uri: str, tmp_path: Path
) -> None:
    parquet.write_table(rows(60, 70), tmp_path / "more.parquet")
    before = sorted(Path(uri).rglob("*"))
    assert lance(f"stage append {tmp_path}/more.parquet").value.num_added_rows == 10
    with pytest.raises(UsageError, match="edits are staged"):
        lance(f"open {uri}")
    lance("discard")
    assert sorted(Path(uri).rglob("*")) == before
    with pytest.raises(UsageError, match="neither a variable nor a file"):
        lance("stage append nothing")


def test_an_edit_that_fails_leaves_the_stage_usable(lance: Lance, shell: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="no column named 'nope'"):
        lance("stage delete 'nope = 1'")
    lance("stage delete 'id = 1'")
    lance("commit")
    assert shell.user_ns["ds"].count_rows() == 48


# --- sql


def test_sql_joins_versions(lance: Lance) -> None:
    found = lance(
        "sql SELECT now.id FROM dataset AS now ANTI JOIN ds@v1 AS old USING (id) "
        "WHERE now.label IS NOT NULL ORDER BY id LIMIT 2"
    )
    assert found.value["id"].to_pylist() == [30, 31]


def test_sql_names_refs_in_any_script(lance: Lance) -> None:
    lance("tag create हिनदी v1")
    found = lance("sql SELECT count(*) AS n FROM dataset@हिनदी, (SELECT 1)")
    assert found.value["n"].to_pylist() == [30]


def test_a_cell_is_sql_and_quotes_stay(shell: InteractiveShell) -> None:
    text = "SELECT 'a@b' AS x, 'it''s' AS y,\n  count(*) AS n FROM dataset@dev -- ds@nowhere\n"
    shell.run_cell_magic("lance", "-o found", text)
    assert shell.user_ns["found"].to_pylist() == [{"x": "a@b", "y": "it's", "n": 29}]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sql SELECT * FROM nowhere", "nowhere"),
        ("sql SELECT nope FROM dataset", "nope"),
        ("sql SELECT * FROM dataset@nope", "tag or branch 'nope' does not exist"),
        ("sql SELECT * FROM other@v1", "'other' is not a dataset"),
        ("sql SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("sql", "the statement is missing"),
    ],
)
def test_wrong_sql_is_one_line(lance: Lance, line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        lance(line)


def test_a_branch_in_use_is_deleted_by_force_alone(lance: Lance) -> None:
    lance("branch create mine")
    lance("tag create kept mine")
    with pytest.raises(UsageError, match="'mine' cannot be deleted: tag 'kept'"):
        lance("branch delete mine")
    assert {one["branch"] for one in lance("branch").data} == {"dev", "mine"}
    lance("branch delete mine --force")
    assert {one["branch"] for one in lance("branch").data} == {"dev"}


def test_rows_that_fail_and_the_version_that_brought_them(lance: Lance) -> None:
    lance("expect add 'id < 30' --name small")
    found = lance("check --name small --rows 3")
    assert found.value["id"].to_pylist() == [30, 31, 32]
    assert found.exit_code == 1
    search = lance("expect bisect small")
    assert search.value.first_bad == search.data["first_bad"]
    assert "is the first version where the statement is false" in str(search)
    assert lance(f"expect bisect small --bad {search.data['last_good'] or 1}").exit_code == 0
    with pytest.raises(UsageError, match="use --name NAME"):
        lance("check --rows 3")
