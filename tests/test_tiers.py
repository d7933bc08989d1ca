"""A tier reads only the files that can hold one of its tests."""

from __future__ import annotations

import re

import pytest

from tests.support.tiers import MARKERS, ROOT, in_part, left_out, may_hold

FAST = "not interop and not slow and not ui and not spark"
INTEROP = "(interop or slow) and not ui and not spark"
PLAIN = "def test_x(): ..."
SLOW_ONE = "@pytest.mark.slow\ndef test_x(): ..."
ALL_INTEROP = "pytestmark = pytest.mark.interop\n"
ALL_UI = "pytestmark = [\n    pytest.mark.ui,\n    pytest.mark.interop,\n]\n"


@pytest.mark.parametrize(
    ("text", "tiers"),
    [
        (PLAIN, {FAST}),
        (SLOW_ONE, {FAST, INTEROP}),
        (ALL_INTEROP + PLAIN, {INTEROP}),
        (ALL_INTEROP + SLOW_ONE, {INTEROP}),
        (ALL_UI + PLAIN, {"ui"}),
        ("from tests.spark.data import MARKS\n\npytestmark = MARKS\n" + PLAIN, {"spark"}),
        ("from tests.conformance.codec_tests import CodecTests", {FAST, INTEROP}),
        ("from tests.conformance.nothing_there import X", {FAST}),
    ],
)
def test_a_file_is_read_by_the_tiers_that_its_tests_may_belong_to(text, tiers):
    assert {tier for tier in (FAST, INTEROP, "ui", "spark") if may_hold(text, tier)} == tiers


@pytest.mark.parametrize("tier", ["hypothesis", "slow(x=1)", "slow and", "not ui", "1 < 2"])
def test_what_is_not_about_our_markers_leaves_no_file_out(tier):
    assert may_hold(PLAIN, tier)


@pytest.mark.parametrize(
    ("path", "tiers"),
    [
        ("tests/ui", {"ui"}),
        ("tests/spark", {"spark"}),
        ("tests/unit/storage", {FAST}),
        ("tests/support", {FAST, INTEROP, "ui", "spark"}),
        ("tests/conftest.py", {FAST, INTEROP, "ui", "spark"}),
        ("tests/test_house.py", {FAST}),
    ],
)
def test_a_folder_is_read_by_the_tiers_of_its_files(path, tiers):
    assert {
        tier for tier in (FAST, INTEROP, "ui", "spark") if not left_out(ROOT / path, tier)
    } == tiers


def test_every_file_of_a_tier_is_in_one_part():
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if not left_out(path, FAST)]
    for count in (1, 2, 3):
        parts = [
            [path for path in files if in_part(path, FAST, f"{number}/{count}")]
            for number in range(1, count + 1)
        ]
        assert sorted(path for part in parts for path in part) == sorted(files)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert not in_part(ROOT / "tests/ui/test_lab_tour.py", FAST, "1/1")


def test_the_tiers_of_the_makefile_are_these():
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r'-m "([^"]+)"', makefile)) == {FAST, INTEROP}
    assert set(re.findall(r"-m (ui|spark)\b", makefile)) == {"ui", "spark"}


def test_pull_requests_run_the_command_of_ci_which_is_make_test():
    assert "run: .ci/run\n" in (ROOT / ".github/workflows/test.yml").read_text()
    assert re.search("^make test ", (ROOT / ".ci/run").read_text(), re.MULTILINE)


def test_every_marker_of_a_tier_is_known_here(pytestconfig):
    registered = {line.split(":")[0] for line in pytestconfig.getini("markers")}
    assert set(MARKERS) <= registered
    assert registered & {"interop", "slow", "spark", "ui"} == set(MARKERS)
