from __future__ import annotations

from typing import Any

import pytest

from lance_nb.explorer.models.ref_code import change_code, list_code, merge_code
from tests.unit.explorer.fakes import small_dataset

DATASET = small_dataset()
PYTHON = "lance_nb.dataset('data/fake.lance')"


@pytest.mark.parametrize(
    ("args", "python", "magic"),
    [
        (("tag", "create", "v1", (None, 3)), ".tags.create('v1', 3)", "tag create v1 main:3"),
        (("tag", "move", "v1", ("d", 3)), ".tags.update('v1', ('d', 3))", "tag move v1 d:3"),
        (("tag", "delete", "v1", None), ".tags.delete('v1')", "tag delete v1"),
        (
            ("branch", "create", "dev", (None, 3)),
            ".create_branch('dev', 3)",
            "branch create dev main:3",
        ),
        (("branch", "delete", "a b", None), ".branches.delete('a b')", "branch delete 'a b'"),
    ],
)
def test_changes_as_code(args: tuple[Any, ...], python: str, magic: str) -> None:
    assert change_code(DATASET, *args) == {"python": PYTHON + python, "magic": f"%lance {magic}"}


def test_lists_as_code() -> None:
    assert list_code(DATASET, "tag")["python"] == f"{PYTHON}.tags.list()"
    assert list_code(DATASET, "branch")["magic"] == "%lance branch list"


def test_merges_as_code_name_only_what_is_asked_for() -> None:
    plain = {"on_conflict": "fail", "strategy": "auto"}
    assert merge_code(DATASET, "merge", "dev", None, plain, dry_run=True) == {
        "python": f"{PYTHON}.branches.merge('dev', 'main', dry_run=True)",
        "magic": "%lance merge dev --into main --dry-run",
    }
    wishes = {"on_conflict": "theirs", "key": ["id", "b"], "strategy": "auto", "copy": True}
    assert merge_code(DATASET, "merge", "dev", "exp", wishes, message="it's") == {
        "python": (
            f"{PYTHON}.branches.merge('dev', 'exp', on_conflict='theirs', key=['id', 'b'], "
            'copy=True, message="it\'s")'
        ),
        "magic": ('%lance merge dev --into exp --on-conflict theirs --key id,b --copy -m "it\'s"'),
    }


@pytest.mark.parametrize(
    ("kind", "source", "into", "python", "magic"),
    [
        ("revert", (None, 3), None, ".revert(3)", "revert main:3"),
        ("cherry-pick", ("dev", 3), None, ".cherry_pick(('dev', 3))", "cherry-pick dev:3"),
        (
            "cherry-pick",
            (None, 3),
            "dev",
            ".checkout_version(('dev', None)).cherry_pick(('main', 3))",
            "cherry-pick main:3",
        ),
        ("revert", ("dev", 3), "dev", ".checkout_version(('dev', None)).revert(3)", "revert dev:3"),
    ],
)
def test_single_changes_as_code(
    kind: str, source: tuple[str | None, int], into: str | None, python: str, magic: str
) -> None:
    found = merge_code(DATASET, kind, source, into, {"on_conflict": "fail"})
    assert found == {"python": PYTHON + python, "magic": f"%lance {magic}"}
