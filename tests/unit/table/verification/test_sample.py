"""Samples of files: a share of the bytes, the same for the same seed, and no file left out."""

from __future__ import annotations

from collections import Counter

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.table.verification.findings import choose_sample

SMALL = {f"data/{number:03d}": 10 for number in range(100)}


def test_a_share_is_one_of_bytes_and_not_of_files() -> None:
    sizes = {**SMALL, "data/large": 9_000}

    shares = [choose_sample(sizes, 0.05, seed) for seed in range(200)]

    for one in shares:
        assert one.size_bytes == sum(sizes[name] for name in one.chosen)
        assert one.size_bytes >= 500
        large = "data/large" in one.chosen
        assert one.num_files == len(one.chosen) <= 50
        assert large or one.num_files == 50  # of 10 bytes each, unless the large one ends it
    assert {one.size_bytes_in_all for one in shares} == {10_000}


def test_a_sample_is_as_large_as_asked_for_to_one_file() -> None:
    for share, files in ((0.1, 10), (0.101, 11), (0.999, 100), (0.0001, 1), (1.0, 100)):
        assert choose_sample(SMALL, share, 7).num_files == files


def test_the_same_seed_chooses_the_same_files_whatever_their_order() -> None:
    turned = dict(reversed(SMALL.items()))

    assert choose_sample(SMALL, 0.3, 4) == choose_sample(turned, 0.3, 4)
    assert choose_sample(SMALL, 0.3, 4).chosen != choose_sample(SMALL, 0.3, 5).chosen
    drawn = choose_sample(SMALL, 0.3)
    assert choose_sample(SMALL, 0.3, drawn.seed) == drawn


def test_every_file_has_its_chance() -> None:
    counts: Counter[str] = Counter()
    for seed in range(400):
        counts.update(choose_sample(SMALL, 0.1, seed).chosen)

    assert len(counts) == 100
    assert 15 < min(counts.values()) <= max(counts.values()) < 80  # 40 each, on average


def test_a_number_is_one_of_files() -> None:
    sizes = {"a": 5, "b": 0, "c": 7}

    assert choose_sample(sizes, 2, 1).num_files == 2
    assert choose_sample(sizes, 9, 1).chosen == {"a", "b", "c"}
    assert choose_sample(sizes, 1.0, 1).chosen == {"a", "b", "c"}
    assert choose_sample({}, 0.5, 1).share == 1.0


def test_the_text_tells_files_bytes_share_and_seed() -> None:
    text = str(choose_sample({"a": 1000, "b": 1000}, 0.5, 3))

    assert text == "a sample of 1 of 2 files, 1,000 of 2,000 bytes (50.0%), seed 3"


@pytest.mark.parametrize("wanted", [0, 0.0, -1, 1.5, True, float("nan")], ids=str)
def test_other_numbers_are_refused(wanted: float) -> None:
    with pytest.raises(InvalidInputError, match="share of the bytes"):
        choose_sample(SMALL, wanted)
