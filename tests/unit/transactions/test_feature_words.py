"""The feature words."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.format.feature_flags import (
    BASE_PATHS,
    COVERING_INDEX_METADATA,
    DELETION_FILES,
    NO_TRANSACTION_FILES,
    SPILLED_ROW_LINEAGE,
    STABLE_ROW_IDS,
    TABLE_CONFIG,
)
from lance_nb.format.manifest import BasePath, Manifest
from lance_nb.transactions.manifest_building import STICKY, flag_words
from tests.support.versions import index, minimal_manifest


def words(manifest: Manifest, *indices: object, **given: bool) -> tuple[int, int]:
    known = {"row_ids": False, "deletions": False, "no_transaction_file": False, **given}
    return flag_words(manifest, list(indices), **known)


def test_nothing_special_needs_no_flag() -> None:
    assert words(minimal_manifest()) == (0, 0)


def test_each_content_has_its_bit() -> None:
    plain = minimal_manifest()
    assert words(plain, deletions=True) == (DELETION_FILES,) * 2
    assert words(plain, row_ids=True) == (STABLE_ROW_IDS,) * 2
    assert words(replace(plain, base_paths=(BasePath(0, "/"),))) == (BASE_PATHS,) * 2
    assert words(replace(plain, config={"k": "v"})) == (0, TABLE_CONFIG)
    assert words(plain, no_transaction_file=True) == (0, NO_TRANSACTION_FILES)
    covering = replace(index("i", 0), covering_fields=(1,))
    assert words(plain, covering) == (COVERING_INDEX_METADATA,) * 2


def test_what_cannot_be_seen_stays_and_the_rest_goes() -> None:
    every = replace(
        minimal_manifest(),
        reader_feature_flags=STICKY | SPILLED_ROW_LINEAGE | DELETION_FILES,
        writer_feature_flags=STICKY | TABLE_CONFIG,
    )
    assert words(every) == (STICKY, STICKY)
