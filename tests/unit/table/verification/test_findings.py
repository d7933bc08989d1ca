"""What a report keeps, counts and prints."""

from __future__ import annotations

import pytest

from lance_nb.table.verification.findings import FINDINGS_MAX, Bounded, Finding, Verification


def report(*findings: Finding, **left_out: int) -> Verification:
    return Verification("u", 3, 2, 1, 1, 0, 1, 1000, 1, 6, findings, left_out)


@pytest.mark.parametrize("more", [-1, 0, 1, 7])
def test_findings_of_one_code_are_bounded_and_the_others_counted(more: int) -> None:
    bounded = Bounded()
    bounded.add(Finding("version-gap", str(one)) for one in range(FINDINGS_MAX + more))
    bounded.add([Finding("hint-stale", "other")])
    assert len(bounded.findings) == FINDINGS_MAX + min(more, 0) + 1
    assert bounded.left_out == ({"version-gap": more} if more > 0 else {})


def test_a_report_says_what_was_looked_at_and_what_is_wrong() -> None:
    found = report(
        Finding("hint-stale", "a\x1b[2Jb"),
        Finding("version-gap", "gap", "p", None, 2, 0),
        Finding("data-file-missing", "gone", "data/x", "dev", 1),
        **{"version-gap": 2},
    )
    assert not found.ok
    assert found.num_files_without_checksum == 0
    assert found.verdict == "1 error, 3 warnings, 1 note"
    assert str(found.findings[0]) == "note hint-stale: dataset: a\\x1b[2Jb"
    assert found.findings[1].where == "p, version main:2, fragment 0"
    assert found.findings[2].where == "data/x, version dev:1"
    table = found.to_table()
    assert table["code"].to_pylist() == ["data-file-missing", "version-gap", "hint-stale"]
    text = repr(found)
    assert "2 versions, 1 fragment, 1 data file, 0 deletion files, 1 index" in text
    assert "1,000 values decoded" in text
    assert "1 file without a version (6 bytes)" in text
    assert "more" not in text.splitlines()[-1]
    assert report(Finding("hint-stale", "x")).verdict == "whole, 1 note"
    assert report().verdict == "whole"
    many = [Finding("version-gap", str(one)) for one in range(22)]
    assert repr(report(*many, **{"version-gap": 2})).endswith("... and 4 more")
    assert "and" not in repr(report(*many[:20])).splitlines()[-1]
