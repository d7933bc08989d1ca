"""Merged logs in the index that keeps them."""

from __future__ import annotations

from lance_nb.format.merged_logs import merged_logs
from lance_nb.transactions.index_rules import record_merged_logs
from lance_nb.transactions.manifest_building import Draft
from tests.support.sample_operations import LOG, log_index
from tests.support.versions import Versions, index


def test_the_index_is_changed_in_its_place_and_belongs_to_the_new_version() -> None:
    versions = Versions(1)
    draft = Draft(versions.context(), versions.manifest)
    draft.indices = [index("before", 0), *log_index().added, index("behind", 0)]
    record_merged_logs(draft, [LOG])
    assert [one.name for one in draft.indices] == ["before", "__lance_mem_wal", "behind"]
    assert merged_logs(draft.indices[1].details) == (LOG,)
    assert draft.indices[1].dataset_version == 2
