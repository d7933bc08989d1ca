from __future__ import annotations

import pickle
from xml.etree import ElementTree as ET

from lance_nb.dataset.checks.result import CheckOutcome, CheckResult, junit_xml

HOSTILE = "<script>alert('x')</script>\x1b[31m\u202e\x00\"&]]>"


def result() -> CheckResult:
    outcomes = (
        CheckOutcome("a", "id < 9", "check", "pass", num_rows=3, num_failed=0, num_null=0),
        CheckOutcome("b", HOSTILE, "check", "fail", HOSTILE, 3, 1, 0, HOSTILE, (4,)),
        CheckOutcome("c", "x", "check", "unknown", "no column"),
    )
    return CheckResult(HOSTILE, None, 7, outcomes, 10)


def test_it_says_what_holds() -> None:
    found = result()
    assert not found.ok
    assert found.status == "fail"
    assert [one.name for one in found.failed] == ["b"]
    assert found.sentence == "main:7: 3 expectations, 1 failed, 1 unknown, 1 passed"
    assert found.to_table()["status"].to_pylist() == ["pass", "fail", "unknown"]
    assert found.to_table()["fragments"].to_pylist() == [[], [4], []]
    assert CheckResult("d", "dev", 1, ()).status == "none"
    assert CheckResult("d", "dev", 1, ()).ok
    unknown = CheckResult("d", "dev", 1, found.outcomes[2:])
    assert (unknown.ok, unknown.status) == (False, "unknown")
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301


def test_hostile_texts_become_no_markup() -> None:
    found = result()
    html = found._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html + repr(found)
    assert "\u202e" not in html + repr(found)


def test_junit_is_well_formed_whatever_the_texts_are() -> None:
    tree = ET.fromstring(junit_xml([result(), result()]))  # noqa: S314
    suites = tree.findall("testsuite")
    assert [one.get("tests") for one in suites] == ["3", "3"]
    assert (suites[0].get("failures"), suites[0].get("errors")) == ("1", "1")
    cases = suites[0].findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [[], ["failure"], ["error"]]
