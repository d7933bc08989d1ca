from __future__ import annotations

import pytest

from lance_nb.errors import InvalidRefError, LanceError, RefNotFoundError, VersionNotFoundError
from lance_nb.explorer.models.refs import magic_line, python_line, resolve
from tests.unit.explorer.fakes import small_dataset


@pytest.mark.parametrize(
    ("ref", "place"),
    [
        ("2", (None, 2)),
        (" 3 ", (None, 3)),
        ("main", (None, 4)),
        ("main:1", (None, 1)),
        ("dev", ("dev", 3)),
        ("dev:2", ("dev", 2)),
        ("tag:v1", (None, 2)),
        ("v1", (None, 2)),
        ("HEAD", (None, 4)),
        ("HEAD~2", (None, 2)),
    ],
)
def test_refs_mean_what_people_write(ref: str, place: tuple[str | None, int]) -> None:
    found = resolve(small_dataset(), ref)
    assert (found.branch, found.version) == place


def test_numbers_and_head_mean_the_branch_in_view() -> None:
    dev = small_dataset().checkout_version(("dev", None))
    assert resolve(dev, "2").branch == "dev"
    assert resolve(dev, "HEAD~1").version == 2
    assert resolve(dev, "main").branch is None


@pytest.mark.parametrize(
    ("ref", "error", "words"),
    [
        ("99", VersionNotFoundError, "99"),
        ("dev:99", VersionNotFoundError, "99"),
        ("HEAD~4", VersionNotFoundError, "HEAD~3 is the oldest"),
        ("v2", RefNotFoundError, "v1"),
        ("tag:dev", RefNotFoundError, "v1"),
        ("deb:1", RefNotFoundError, "dev"),
        ("", InvalidRefError, "HEAD~2"),
        ("dev:", InvalidRefError, "dev:"),
        (":1", InvalidRefError, ":1"),
        ("dev:1:2", LanceError, ""),
        ("x" * 5000, InvalidRefError, "…"),
        ("9" * 100, RefNotFoundError, ""),
        ("HEAD~-1", InvalidRefError, "HEAD~2"),
        ("../../etc", InvalidRefError, "HEAD~2"),
    ],
)
def test_refs_that_name_nothing_say_what_there_is(
    ref: str, error: type[LanceError], words: str
) -> None:
    with pytest.raises(error) as caught:
        resolve(small_dataset(), ref)
    assert words in str(caught.value)


def test_every_state_has_its_python_and_magic_line() -> None:
    dataset = small_dataset()
    assert python_line(dataset) == "ds = lance_nb.dataset('data/fake.lance', version=4)"
    assert magic_line(dataset) == "%lance at main:4"
    dev = dataset.checkout_version(("dev", 2))
    assert python_line(dev) == "ds = lance_nb.dataset('data/fake.lance', version=('dev', 2))"
    assert resolve(dataset, magic_line(dev).removeprefix("%lance at ")).branch == "dev"
