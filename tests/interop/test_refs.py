"""Tags and branches that pylance writes, and names that it accepts or refuses."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidRefError
from lance_nb.format import layout
from lance_nb.format.alphanumeric import RANGES
from lance_nb.format.refs import Branch, Tag, check_branch_name, check_tag_name
from lance_nb.storage.registry import open_store
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

CHARACTERS_OF_A_CATEGORY = 40
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


# --- names beyond ASCII ---------------------------------------------------------------------------


def characters(seed: int) -> list[str]:
    """Return characters on both sides of every border of the table, and some of each category."""
    if SCALE > 1:
        codes = set(range(0x110000))
    else:
        codes = {code for first, last in RANGES for code in (first - 1, first, last, last + 1)}
        by_category: dict[str, list[int]] = {}
        for code in range(0x110000):
            by_category.setdefault(unicodedata.category(chr(code)), []).append(code)
        chance = random.Random(seed)
        for members in by_category.values():
            codes.update(chance.sample(members, min(CHARACTERS_OF_A_CATEGORY, len(members))))
    return [chr(code) for code in sorted(codes) if not 0xD800 <= code < 0xE000]


def is_refused(call: Callable[[], object]) -> bool:
    """Return whether pylance calls a name invalid; one that only does not exist is valid."""
    try:
        call()
    except (OSError, ValueError) as error:
        return "Ref is invalid" in str(error)
    return False


def test_characters_of_names_are_judged_as_pylance_does(dataset: Any):
    seed = random.randrange(2**32)
    judged = characters(seed)
    different = []
    for character in judged:
        name = f"x{character}y"
        for check, call in (
            (check_tag_name, lambda name=name: dataset.tags.get_version(name)),
            (check_branch_name, lambda name=name: dataset.checkout_version((name, 1))),
        ):
            try:
                check(name)
                accepted = True
            except InvalidRefError:
                accepted = False
            if accepted is is_refused(call):
                different.append((check.__name__, hex(ord(character))))
    assert not different, f"seed {seed}: {len(different)} of {2 * len(judged)}: {different[:20]}"


# Vowel signs, circled letters, a combining mark first, supplementary planes, letters of Unicode 17.
SCRIPTS = ["हिनदी", "ⓐⓑ", "\u0345x", "\U00011f02\U00011f00", "a/ि.\U0001ccf0", "١٢", "\u1e9e-ß"]


@pytest.mark.parametrize("name", SCRIPTS, ids=ascii)
@pytest.mark.parametrize("creator", ["pylance", "lance_nb"])
def test_refs_in_any_script_are_used_and_deleted_by_both(tmp_path: Path, name: str, creator: str):
    lance = require_pylance()
    libraries: list[Any] = [lance, lance_nb] if creator == "pylance" else [lance_nb, lance]
    first, second = libraries
    rows = pa.table({"a": [1]})
    made = first.write_dataset(rows, tmp_path / "d")
    made.create_branch(name, 1)
    for library in (second, first):
        library.dataset(tmp_path / "d").checkout_version((name, None)).insert(rows)
        branch = library.dataset(tmp_path / "d").checkout_version((name, None))
        assert list(library.dataset(tmp_path / "d").branches.list()) == [name]
    assert (branch.version, branch.count_rows()) == (3, 3)
    assert first.dataset(tmp_path / "d").count_rows() == 1
    if "/" not in name:
        made.tags.create(name, (name, 2))
        # To pylance a text is a tag; to us it may be the branch of that name as well.
        refs = {lance: name, lance_nb: f"tag:{name}"}
        there = second.dataset(tmp_path / "d")
        assert there.checkout_version(refs[second]).count_rows() == 2
        there.tags.update(name, (name, 3))
        assert first.dataset(tmp_path / "d", version=refs[first]).count_rows() == 3
        assert list(lance_nb.dataset(tmp_path / "d").tags.list()) == [name]
        with pytest.raises(ValueError, match="Not found"):  # see Tags.create
            lance.dataset(tmp_path / "d").tags.list()
        there.tags.delete(name)
        assert not first.dataset(tmp_path / "d").tags.list()
    second.dataset(tmp_path / "d").branches.delete(name)
    assert not first.dataset(tmp_path / "d").branches.list()
    assert not (tmp_path / "d" / "tree" / name).exists()


@pytest.mark.parametrize(
    ("left", "right"), [("Å", "\u212b"), ("각", "\u1100\u1161\u11a8"), ("k", "\u212a")], ids=ascii
)
def test_names_that_only_normalization_makes_equal_are_two(tmp_path: Path, left: str, right: str):
    lance = require_pylance()
    made = lance_nb.write_dataset(pa.table({"a": [1]}), tmp_path / "d")
    made.create_branch(left).insert(pa.table({"a": [2]}))
    lance.dataset(tmp_path / "d").create_branch(right).insert(pa.table({"a": [3]}))
    for library in (lance, lance_nb):
        for name, value in ((left, 2), (right, 3)):
            found = library.dataset(tmp_path / "d").checkout_version((name, None)).to_table()
            assert found["a"].to_pylist() == [1, value]
    lance_nb.dataset(tmp_path / "d").branches.delete(left)
    assert list(lance.dataset(tmp_path / "d").branches.list()) == [right]
