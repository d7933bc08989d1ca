"""Base paths outside of a dataset: those of this process and of the environment are trusted."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import DatasetBasePath
from lance_nb.dataset import LanceDataset
from lance_nb.errors import BasePathError, InvalidInputError
from lance_nb.magic.command_line import main
from lance_nb.session.base_paths import VARIABLE, split_list, trusted_bases
from lance_nb.spark.plan import PinnedVersion

ROWS = pa.table({"id": range(6)})


@pytest.fixture
def source(tmp_path: Path) -> LanceDataset:
    return lance_nb.write_dataset(ROWS, tmp_path / "source.lance")


def refused(uri: Any, **options: Any) -> str:
    with pytest.raises(InvalidInputError, match="under another base path") as caught:
        lance_nb.dataset(uri, **options).to_table()
    return str(caught.value)


def test_a_clone_opens_in_the_process_that_made_it(source, tmp_path, as_another_process):
    clone = tmp_path / "clone.lance"
    source.shallow_clone(clone)
    assert lance_nb.dataset(clone).to_table() == ROWS
    lance_nb.dataset(clone).shallow_clone(tmp_path / "second.lance")
    assert lance_nb.dataset(tmp_path / "second.lance").to_table() == ROWS
    lance_nb.dataset(clone).insert(ROWS)
    assert lance_nb.dataset(clone).create_branch("side").count_rows("id > 2") == 6
    as_another_process()
    for name in (clone, tmp_path / "second.lance"):
        assert repr(source.uri) in refused(name)


def test_bases_given_to_a_write_are_trusted_afterwards(tmp_path, as_another_process):
    base = DatasetBasePath(str(tmp_path / "hot"), "hot")
    uri = tmp_path / "d.lance"
    lance_nb.write_dataset(ROWS, uri, initial_bases=[base], target_bases=["hot"])
    old = lance_nb.dataset(uri)
    added = DatasetBasePath(str(tmp_path / "cold"), "cold")
    lance_nb.dataset(uri).add_bases([added])
    lance_nb.write_dataset(ROWS, uri, mode="append", target_bases=["cold"])
    assert lance_nb.dataset(uri).count_rows("id >= 0") == 12
    assert old.checkout_latest().count_rows("id >= 0") == 12  # opened before the base was added
    as_another_process()
    refused(uri)
    lance_nb.write_dataset(ROWS, uri, mode="append", target_bases=[str(tmp_path / "hot")])
    assert lance_nb.dataset(uri, 1).count_rows("id >= 0") == 6
    refused(uri)  # the other base was not named


def test_a_base_that_could_not_be_added_is_not_trusted(tmp_path):
    made = lance_nb.write_dataset(ROWS, tmp_path / "d.lance")
    made.add_bases([DatasetBasePath("/first", "name")])
    with pytest.raises(BasePathError):
        made.add_bases([DatasetBasePath("/second", "name")])
    assert made.opened[0].trusted_bases == ("/first",)


def test_a_base_is_trusted_for_the_dataset_that_it_was_added_to(
    source, tmp_path, as_another_process, monkeypatch
):
    source.shallow_clone(tmp_path / "theirs.lance")
    as_another_process()
    source.shallow_clone(tmp_path / "ours.lance")
    assert lance_nb.dataset(tmp_path / "ours.lance").to_table() == ROWS
    refused(tmp_path / "theirs.lance")
    link = tmp_path / "link.lance"
    link.symlink_to(tmp_path / "ours.lance")
    assert lance_nb.dataset(link).to_table() == ROWS
    monkeypatch.chdir(tmp_path)
    assert lance_nb.dataset("./x/../ours.lance/").to_table() == ROWS


def test_the_environment_allows_bases(source, tmp_path, as_another_process, monkeypatch):
    clone = tmp_path / "clone.lance"
    source.shallow_clone(clone)
    as_another_process()
    monkeypatch.setenv(VARIABLE, f"/elsewhere:{source.uri}/:s3://bucket/x")
    assert lance_nb.dataset(clone).to_table() == ROWS
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert lance_nb.dataset(clone).to_table() == ROWS
    assert main(["sql", str(clone), "SELECT sum(id) FROM dataset"]) == 0
    monkeypatch.setenv(VARIABLE, "/elsewhere")
    assert main(["sql", str(clone), "SELECT sum(id) FROM dataset"]) != 0
    monkeypatch.setenv(VARIABLE, "file://host/x")
    with pytest.raises(InvalidInputError, match=f"{VARIABLE}: .*names the host"):
        lance_nb.dataset(clone)


def test_handles_take_their_bases_to_other_processes(
    source, tmp_path, as_another_process, monkeypatch
):
    clone = source.shallow_clone(tmp_path / "clone.lance")
    in_process = lance_nb.dataset(clone.uri)
    monkeypatch.setenv(VARIABLE, source.uri)
    by_environment = lance_nb.dataset(clone.uri)
    monkeypatch.delenv(VARIABLE)
    sent = [
        (pickle.dumps(handle), pickle.dumps(PinnedVersion.of(handle)))
        for handle in (clone, in_process, by_environment)
    ]
    as_another_process()
    for payload, place in sent:
        assert pickle.loads(payload).to_table() == ROWS  # noqa: S301
        assert pickle.loads(place).dataset().to_table() == ROWS  # noqa: S301


def test_the_error_names_the_line_that_allows_the_base(
    source, tmp_path, as_another_process, monkeypatch
):
    clone = tmp_path / "it's a clone.lance"
    source.shallow_clone(clone)
    as_another_process()
    text = refused(clone, allow_bases=["/elsewhere"])
    line = text[text.index("lance_nb.dataset(") : text.index(", or before")]
    opened = eval(line, {"lance_nb": lance_nb})  # noqa: S307 - that it runs is the point
    assert opened.to_table() == ROWS
    exported = text.rpartition(f"export {VARIABLE}=")[2]
    monkeypatch.setenv(VARIABLE, exported)
    assert lance_nb.dataset(clone).to_table() == ROWS


@pytest.mark.parametrize(
    ("allowed", "base", "is_allowed"),
    [
        ("{tmp}/a", "{tmp}/a", True),
        ("{tmp}/a/", "{tmp}/a", True),
        ("{tmp}/a", "{tmp}/a/b//", True),
        ("{tmp}//x/../a/.", "{tmp}/a", True),
        ("{tmp}/a", "{tmp}/ab", False),
        ("{tmp}/a", "{tmp}/a/../secret", False),
        ("{tmp}/a", "{tmp}", False),
        ("{tmp}/a", "{tmp}/a/out", False),  # a link to ../secret
        ("{tmp}/in", "{tmp}/a", True),  # a link to a
        ("FILE://{tmp}/a", "file://{tmp}/a/b", True),
        ("file://{tmp}/a", "{tmp}/a", True),
        ("memory://m/a", "MEMORY://m/a/b", True),
        ("memory://m/a", "memory://m/ab", False),
        ("memory://m", "memory://m/a", True),
        ("s3://b/a", "memory://b/a", False),
        ("/", "{tmp}/a", True),
        ("/", "memory://b/a", False),
    ],
)
def test_what_an_entry_allows(
    tmp_path: Path, allowed: str, base: str, is_allowed: bool, as_another_process: Any
):
    for name in ("a/b", "ab", "secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/out").symlink_to(tmp_path / "secret")
    (tmp_path / "in").symlink_to(tmp_path / "a")
    place = base.format(tmp=tmp_path)
    uri = f"memory://{uuid4().hex}/d.lance"
    lance_nb.write_dataset(
        ROWS, uri, initial_bases=[DatasetBasePath(place, "b")], target_bases=["b"]
    )
    as_another_process()
    given = [allowed.format(tmp=tmp_path)]
    if is_allowed:
        assert lance_nb.dataset(uri, allow_bases=given).to_table() == ROWS
    else:
        refused(uri, allow_bases=given)


def test_two_names_of_one_scheme_are_the_same_place():
    from lance_nb.storage.registry import relative_uri

    assert relative_uri("s3a://b/x/y", "s3://b/x") == "y"
    assert relative_uri("gcs://b/x", "gs://b/x/") == ""
    assert relative_uri("s3a://b/xy", "s3://b/x") is None
    assert relative_uri("gs://b/x", "s3://b/x") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (":", []),
        ("/a", ["/a"]),
        ("/a::/b:", ["/a", "/b"]),
        ("/a:s3://b/c:/d", ["/a", "s3://b/c", "/d"]),
        ("s3://b:gs://c/d:relative", ["s3://b", "gs://c/d", "relative"]),
        ("http://host:8000/x:/a", ["http://host:8000/x", "/a"]),
        ("http://host:8000:/a", ["http://host:8000", "/a"]),
        ("http://host/x:8000", ["http://host/x", "8000"]),
        ("s3+x://b:memory://m/y", ["s3+x://b", "memory://m/y"]),
        ("/a://b", ["/a", "//b"]),
        ("abfss://c@account.dfs.core.windows.net/d:~/e",
         ["abfss://c@account.dfs.core.windows.net/d", "~/e"]),
    ],
)  # fmt: skip
def test_a_list_in_the_environment_is_split_around_uris(text: str, expected: list[str]):
    assert split_list(text, ":") == expected


def test_a_list_on_windows_is_separated_by_semicolons():
    assert split_list(r"C:\a;s3://b:1/c;;D:\e", ";") == [r"C:\a", "s3://b:1/c", r"D:\e"]


def test_local_entries_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, f"rel{os.pathsep}~/home")
    home = str(Path("~/home").expanduser())
    assert trusted_bases([Path("x"), "s3://b"]) == (
        f"{tmp_path}/x",
        "s3://b",
        f"{tmp_path}/rel",
        home,
    )


@pytest.mark.parametrize("given", ["/data", Path("/data"), b"/data"])
def test_one_place_is_not_taken_for_a_list(given: Any):
    # A text is a sequence of characters, of which "/" would allow every local path.
    with pytest.raises(InvalidInputError, match="allow_bases must be a list of locations"):
        lance_nb.dataset("memory://nothing/x", allow_bases=given)
    with pytest.raises(InvalidInputError, match="allow_bases: "):
        lance_nb.dataset("memory://nothing/x", allow_bases=[""])


def test_a_place_that_would_be_several_in_a_list_is_not_offered_as_one(
    source, tmp_path, as_another_process
):
    folder = tmp_path / "data:" / "x"
    shutil.copytree(source.uri, folder)
    lance_nb.dataset(folder).shallow_clone(tmp_path / "clone.lance")
    as_another_process()
    text = refused(tmp_path / "clone.lance")
    assert "allow_bases=[" in text
    assert VARIABLE not in text


def test_a_line_that_is_too_long_to_be_shown_whole_is_not_shown(
    source, tmp_path, as_another_process
):
    folder = tmp_path.joinpath(*["x" * 200] * 4)
    shutil.copytree(source.uri, folder)
    lance_nb.dataset(folder).shallow_clone(tmp_path / "clone.lance")
    as_another_process()
    text = refused(tmp_path / "clone.lance")
    assert "name it in allow_bases=[...]" in text
    assert "lance_nb.dataset(" not in text
