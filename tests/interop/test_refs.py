"""Tags and branches that pylance writes, and names that it accepts or refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidRefError
from lance_nb.format import layout
from lance_nb.format.refs import Branch, Tag, check_branch_name, check_tag_name
from lance_nb.storage.registry import open_store
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

NAMES = [
    "v1.0.0",
    "A-b_c.d",
    "-a",
    "é",
    "lock",
    "Main",
    "main",
    "",
    ".a",
    "a.",
    "a..b",
    "a.lock",
    ".lock",
    "a b",
    "../x",
    "fix/issue-1",
    "a/.b",
    "a.lock/b",
    "a/b.lock",
    "/a",
    "b/",
    "a//b",
    "a\\b",
    "a%2Fb",
    "x\n",
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    lance = require_pylance()
    path = tmp_path_factory.mktemp("refs") / "d"
    dataset = lance.write_dataset(pa.table({"a": [1]}), path)
    dataset.insert(pa.table({"a": [2]}))
    return dataset


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_names_are_judged_as_pylance_does(dataset: Any, name: str, kind: str):
    check = check_tag_name if kind == "tag" else check_branch_name
    try:
        if kind == "tag":
            dataset.tags.create(name, 1)
        else:
            dataset.create_branch(name, 1)
    except (OSError, ValueError):
        with pytest.raises(InvalidRefError):
            check(name)
        return
    assert check(name) == name
    path = layout.tag_path(name) if kind == "tag" else layout.branch_path(name)
    assert open_store(dataset.uri).exists(path)


def test_records_equal_those_of_pylance(tmp_path: Path):
    lance = require_pylance()
    dataset = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "d")
    dataset.insert(pa.table({"a": [2]}))
    dev = dataset.create_branch("dev", 2)
    dev.insert(pa.table({"a": [3]}))
    dev.create_branch("dev/deeper", 3)
    dataset.tags.create("first", 1)
    dataset.tags.create("on-dev", ("dev", 3))
    store = open_store(tmp_path / "d")

    for name, theirs in dataset.tags.list().items():
        data = bytes(store.read(layout.tag_path(name)))
        tag = Tag.from_bytes(data, name)
        assert tag.to_bytes() == data
        assert (tag.branch, tag.version) == (theirs["branch"], theirs["version"])
        assert (tag.created_at, tag.updated_at) == (theirs["created_at"], theirs["updated_at"])
        assert tag.manifest_size_bytes == theirs["manifest_size"]
    for name, theirs in dataset.branches.list().items():
        data = bytes(store.read(layout.branch_path(name)))
        branch = Branch.from_bytes(data, name)
        assert branch.to_bytes() == data
        assert branch.parent_branch == theirs["parent_branch"]
        assert branch.parent_version == theirs["parent_version"]
        assert branch.create_at == theirs["create_at"]
        assert list(branch.identifier) == theirs["branch_identifier"]
        assert store.child(layout.branch_root(name)).list_names("_versions")
    names = [layout.parse_ref_file_name(one) for one in store.list_names(layout.BRANCHES)]
    assert sorted(names) == ["dev", "dev/deeper"]


def test_pylance_reads_a_tag_that_we_wrote(tmp_path: Path):
    lance = require_pylance()
    dataset = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "d")
    dataset.insert(pa.table({"a": [2]}))
    tag = Tag(1, None, 1_795_230_129_147_127_079, 1_795_230_129_147_127_079, 300, {"by": "us"})
    open_store(tmp_path / "d").write_if_absent(layout.tag_path("ours"), tag.to_bytes())
    theirs = lance.dataset(tmp_path / "d").tags.list()["ours"]
    assert theirs["version"] == 1
    assert theirs["created_at"] == tag.created_at
    assert lance.dataset(tmp_path / "d", version="ours").count_rows() == 1
