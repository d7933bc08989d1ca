from __future__ import annotations

import time

import pytest

from lance_nb.explorer.version_refs import (
    MAX_CHOICES,
    RefNames,
    magic_line,
    python_line,
    ref_choices,
    ref_names,
)
from tests.support.fake_dataset import small_dataset

NAMES = RefNames(
    branch=None,
    numbers=tuple(range(1, 131)),
    branches=("dev", "develop-2", "my-dev"),
    tags=dict.fromkeys(("v1", "v10", "v2", "stable"), ""),
)


def test_every_state_has_its_python_and_magic_line() -> None:
    dataset = small_dataset()
    assert python_line(dataset) == "ds = lance_nb.dataset('data/fake.lance', version=4)"
    assert magic_line(dataset) == "%lance at main:4"
    dev = dataset.checkout_version(("dev", 2))
    assert python_line(dev) == "ds = lance_nb.dataset('data/fake.lance', version=('dev', 2))"
    assert dataset.checkout_version(magic_line(dev).removeprefix("%lance at ")).branch == "dev"


def refs(typed: str, names: RefNames = NAMES) -> list[str]:
    return [choice.ref for choice in ref_choices(names, typed)]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("dev", ["dev", "develop-2", "my-dev"]),
        ("DEV", ["dev", "develop-2", "my-dev"]),
        ("tag:v1", ["tag:v1", "tag:v10"]),
        ("stab", ["tag:stable"]),
        ("13", ["13", "130"]),
        ("HEAD~3", ["HEAD~3"]),
        ("he", ["HEAD", "HEAD~1", "HEAD~2"]),
        ("HEAD~500", []),
        ("dev:3", ["dev:3", "develop-2:3", "my-dev:3"]),
        ("2026-08-01", ["2026-08-01"]),
        ("2026-08-01 12:30", ["2026-08-01 12:30"]),
        ("nothing like it", []),
    ],
)
def test_what_is_typed_is_completed_from_names(typed: str, expected: list[str]) -> None:
    assert refs(typed) == expected


def test_nothing_typed_offers_the_newest_versions_and_what_has_a_name() -> None:
    assert refs("")[:3] == ["130", "129", "dev"]
    assert "tag:stable" in refs("")


def test_the_notes_tell_where_a_ref_leads() -> None:
    head, before = ref_choices(NAMES, "HEAD")[:2]
    assert (head.note, before.note) == ("main:130", "main:129")
    assert ref_choices(NAMES, "130")[0].note == "of main · newest"


def test_hostile_names_are_fit_to_show_and_still_lead_somewhere() -> None:
    name = "a\u202e<b>"
    (choice,) = ref_choices(RefNames(None, (1,), (name,), {}), "a\u202e")
    assert choice.ref == name
    assert choice.label == "a⟨U+202E⟩<b>"
    assert refs("x", RefNames(None, (1,), ("x" * 1000,), {})) == []


def test_ten_thousand_versions_and_hundreds_of_branches_are_completed_at_once() -> None:
    many = RefNames(
        None,
        tuple(range(1, 10_001)),
        tuple(f"branch-{at}" for at in range(300)),
        {f"tag-{at}": "" for at in range(300)},
    )
    started = time.process_time()
    for typed in ("", "9", "99", "branch-2", "tag", "HEAD~9999"):
        assert 0 < len(refs(typed, many)) <= MAX_CHOICES
    assert (time.process_time() - started) / 6 < 0.2  # under 0.05 on a quiet machine


def test_names_are_listed_without_reading_a_version() -> None:
    dataset = small_dataset()
    assert ref_names(dataset) == RefNames(None, (1, 2, 3, 4), ("dev",), dict(dataset.tags.marks()))
    assert dataset.reads == []
