"""Whole datasets, damaged: every verb ends in data or a LanceError, soon and in little memory.

A small share; the long form: ``python -m tests.faults datasets``. ``golden/found`` holds cases that
ended otherwise once.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb._pb import table
from lance_nb.errors import CorruptFileError, InternalError, LanceError
from lance_nb.storage.registry import open_store
from tests.faults.damage import looks
from tests.faults.damage.cases import Case, check
from tests.faults.damage.damage import damage, edited, fragment_list
from tests.faults.damage.shown import ShownError, check_error, check_html, check_table, check_text
from tests.faults.damage.worlds import World
from tests.support.damages import edited_manifest_file, put_fragments

HEALTH = ("verify", "doctor", "plan_repair", "whole history", "space")
READING = ("scan", "described")
DAMAGES = 120  # of each manifest
MANIFESTS = {
    "pylance_14_0_2/history": (3, 9, 12, 14),
    "pylance_14_0_2/stable_ids": (6,),
    "pylance_14_0_2/types_2_2": (1,),
}
FOUND = sorted((Path(__file__).parent / "golden" / "found").glob("*.json"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World("ours_2_2", tmp_path_factory.mktemp("worlds"))


@pytest.mark.slow
def test_verbs_on_damaged_datasets_end_in_data_or_a_lance_error() -> None:
    ends = check(range(300))
    assert ends["done"] > 100
    assert ends["refused"] > 50


@pytest.mark.slow
def test_health_of_damaged_datasets_is_reported() -> None:
    ends = check(range(10_000, 10_080), HEALTH)
    assert ends["done"] > 300


@pytest.mark.slow
@pytest.mark.parametrize("name", MANIFESTS)
def test_damage_to_manifests_and_refs_never_escapes(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = World(name, tmp_path_factory.mktemp("worlds"))
    names = [f"_versions/{2**64 - 1 - version:020d}.manifest" for version in MANIFESTS[name]]
    names += [path for path in whole.files if path.startswith("_refs/")]
    cases = []
    for number, path in enumerate(names):
        for seed in range(DAMAGES if path.endswith(".manifest") else DAMAGES // 3):
            done, data = edited(path, whole.files[path], random.Random(f"{seed} {number}"))
            verbs = READING if path.endswith(".manifest") else ("refs", "opening")
            later = [other for other in whole.files if is_later(other, path)]  # so it is read
            change = {path: data, **dict.fromkeys(later)}
            cases.append(Case(seed, name, f"{done} of {path}", change, verbs))
    ends = check(cases)
    print(f"{len(cases)} cases: {dict(ends)}")
    assert ends["refused"] > len(cases) // 5


def is_later(path: str, manifest: str) -> bool:
    """Tell whether a file makes a version that follows that of a manifest."""
    hint = "_versions/latest_version_hint.json"
    return manifest.startswith("_versions/") and (path == hint or "_versions/" < path < manifest)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_once_does_not_come_back(path: Path) -> None:
    check([Case.from_json(path.read_text())])


# --- what the cases are made of -------------------------------------------------------------------


def test_a_seed_is_a_damage_and_a_case_can_be_kept(world: World) -> None:
    for seed in range(20):
        first, second = (damage(world.files, random.Random(seed)) for _ in range(2))
        assert first == second
        case = Case(seed, world.name, *first, ("scan",))
        assert Case.from_json(case.to_json()) == case


def test_a_fragment_may_be_given_its_own_files(world: World) -> None:
    """A list of protobuf that is extended by itself never ends."""

    def alone(message: table.Manifest, _: table.IndexSection) -> None:
        put_fragments(message, [table.DataFragment(id=1, files=[table.DataFile(path="x")])])

    newest = min(one for one in world.files if one.startswith("_versions/1"))
    manifest = edited_manifest_file(world.files[newest], alone, lambda data: data)
    for seed in range(30):
        fragment_list(manifest, random.Random(seed))


def test_a_world_is_put_back_and_watches_what_lies_beside_it(world: World) -> None:
    path = min(world.files)
    world.restore({path: None, "new": b"x"})
    assert not open_store(world.uri).exists(path)
    assert open_store(world.uri).exists("new")
    world.restore({})
    assert open_store(world.uri).read(path) == world.files[path]
    assert not open_store(world.uri).exists("new")
    assert world.touched() == []
    open_store(world.top).write("x", b"other")
    open_store(world.top).write("y", b"new")
    assert world.touched() == ["y", "x"]


# --- what is a finding ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [TypeError("x"), InternalError("x"), MemoryError()])
def test_what_is_no_refusal_is_a_finding(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setitem(looks.LOOKS, "scan", (1, fail))
    case = Case(1, "ours_2_2", "nothing", {}, ("scan",))
    with pytest.raises(type(error)):
        check([case])


def test_health_that_raises_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LanceError("x")

    monkeypatch.setitem(looks.LOOKS, "verify", (1, fail))
    with pytest.raises(ShownError, match="verify raised"):
        check([Case(1, "ours_2_2", "nothing", {}, ("verify",))])
    monkeypatch.setitem(looks.LOOKS, "scan", (1, fail))
    assert check([Case(1, "ours_2_2", "nothing", {}, ("scan",))]) == {"refused": 1}


def test_markup_and_invisible_text_are_findings() -> None:
    check_html('<details open><p>a &lt;img&gt;</p><td style="text-align:left">b</td></details>')
    for html in ("<img src=x>", "<p onclick=x>", "<!-- x -->", "<?x?>", "<p>\x1b</p>"):
        with pytest.raises(ShownError):
            check_html(html)
    for text in ("\x1b[31m", "\u202e"):
        with pytest.raises(ShownError):
            check_text(text)
    with pytest.raises(ShownError, match="2000 characters"):
        check_error(_LongError("x" * 2000))
    check_error(CorruptFileError("\x1b", None, "a", "b"))


class _LongError(LanceError):
    def __str__(self) -> str:
        return str(self.args[0])


def test_invalid_arrays_are_findings() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x01\0\0\0"), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(pa.ArrowInvalid):
        check_table(pa.table({"a": text}))
