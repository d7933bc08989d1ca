"""Options of a compaction: what is read, from where, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.transactions.compaction import CompactionOptions


def test_what_is_given_comes_before_what_is_configured() -> None:
    config = {
        "lance.compaction.target_rows_per_fragment": "300",
        "lance.compaction.materialize_deletions": "False",
        "lance.compaction.materialize_deletions_threshold": "0.5",
        "lance.compaction.data_storage_version": "2.2",
        "lance.compaction.later": "1",
        "lance.auto_cleanup.interval": "20",
    }
    given = {"target_rows_per_fragment": 7, "max_source_rows": None, "excluded_fragment_ids": [3]}
    found = CompactionOptions.of(given, config)
    assert found == CompactionOptions(
        7, materialize_deletions=False, materialize_deletions_threshold=0.5,
        excluded_fragment_ids=frozenset({3}), data_storage_version="2.2",
    )  # fmt: skip
    assert CompactionOptions.of({}, config).target_rows_per_fragment == 300


def test_a_configured_value_of_another_kind_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"lance\.compaction\.batch_size: 'abc'"):
        CompactionOptions.of({}, {"lance.compaction.batch_size": "abc"})


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"nonsense": 1}, InvalidInputError),
        ({"batch_size": 0}, InvalidInputError),
        ({"max_source_fragments": -1}, InvalidInputError),
        ({"num_threads": True}, InvalidInputError),
        ({"defer_index_remap": "yes"}, InvalidInputError),
        ({"materialize_deletions_threshold": "much"}, InvalidInputError),
        ({"materialize_deletions_threshold": 1.01}, InvalidInputError),
        ({"materialize_deletions_threshold": -0.01}, InvalidInputError),
        ({"target_rows_per_fragment": 0}, InvalidInputError),
        ({"max_bytes_per_file": 0}, InvalidInputError),
        ({"max_source_rows": 0}, InvalidInputError),
        ({"max_source_bytes": 0}, InvalidInputError),
        ({"compaction_mode": "copy"}, InvalidInputError),
        ({"compaction_mode": []}, InvalidInputError),
        ({"excluded_fragment_ids": ["a"]}, InvalidInputError),
        ({"compaction_mode": "force_binary_copy"}, NotSupportedError),
    ],
)
def test_bad_options_are_refused(given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        CompactionOptions.of(given, {})


@pytest.mark.parametrize(
    "given",
    [
        {"materialize_deletions_threshold": 0},
        {"materialize_deletions_threshold": 1},
        dict.fromkeys(("target_rows_per_fragment", "batch_size", "max_source_bytes"), 1),
        {"compaction_mode": "try_binary_copy", "defer_index_remap": False},
    ],
)
def test_options_at_their_bounds_are_taken(given: dict[str, Any]) -> None:
    found = CompactionOptions.of(given, {})
    assert {name: getattr(found, name) for name in given} == given


def test_defaults_are_those_of_pylance() -> None:
    options = CompactionOptions()
    assert (options.target_rows_per_fragment, options.max_rows_per_group) == (1_048_576, 1024)
    assert (options.materialize_deletions, options.materialize_deletions_threshold) == (True, 0.1)
    assert options.binary_copy_read_batch_bytes == 16_777_216
