from __future__ import annotations

import json
import shlex
import shutil
from io import StringIO
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import lance_nb
from lance_nb.magic.command_line import main
from tests.unit.magic.conftest import Lance


@pytest.fixture(autouse=True)
def opened(lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")


def test_space_names_every_byte(lance: Lance, uri: str) -> None:
    found = lance("space")
    sizes = {one["bytes of"]: one["size"] for one in found.data}
    stored = sum(one.stat().st_size for one in Path(uri).rglob("*") if one.is_file())
    kinds = ("current", "old", "orphan", "bookkeeping", "other")
    assert sum(sizes[kind] for kind in kinds) == stored
    assert "tag late only" in sizes


def test_the_doctor_finds_damage_and_says_so_to_a_shell(
    lance: Lance, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lance("doctor").exit_code == 0
    victim = next(Path(uri).glob("data/*.lance"))
    victim.write_bytes(victim.read_bytes()[:50])
    assert main(["doctor", uri, "--quick"]) == 1
    assert victim.name in capsys.readouterr().out


def test_the_doctor_reads_a_share_of_the_bytes_and_says_which(
    lance: Lance, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", uri, "--sample", "30%", "--seed", "5", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["sample"]
    assert first["seed"] == 5
    assert 0.3 <= first["share"] < 1
    assert first["share"] == first["bytes"] / first["bytes_in_all"]
    assert lance("doctor --sample 0.3 --seed 5").data["sample"] == first

    shown = lance("verify --sample 30% --seed 5").picture.text

    assert f"content read: a sample of {first['files']} of {first['files_in_all']} files" in shown
    assert f"({first['share']:.1%}), seed 5" in shown
    assert lance("doctor").data["sample"] is None


@pytest.mark.parametrize("words", ["--sample 0", "--sample 101%", "--sample x", "--sample nan",
                                   "--quick --sample 0.5", "--seed 3"])  # fmt: skip
def test_a_sample_that_is_none_is_refused(
    uri: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", uri, *words.split()]) == 2
    assert "--sample" in capsys.readouterr().err


def test_a_compaction_makes_a_version_when_there_is_something_to_do(
    lance: Lance, shell: InteractiveShell
) -> None:
    before = shell.user_ns["ds"].version
    lance("compact")
    assert len(shell.user_ns["ds"].get_fragments()) == 1
    assert shell.user_ns["ds"].version > before
    assert "Nothing to compact" in lance("compact").picture.text


def test_a_clean_up_deletes_only_when_reported_to(
    lance: Lance, shell: InteractiveShell, uri: str
) -> None:
    before = sorted(Path(uri).rglob("*"))
    found = lance("clean --keep 1")
    assert "add --really" in found.picture.text
    assert sorted(Path(uri).rglob("*")) == before
    listed = json.loads(str(lance("clean --keep 1 --json")))
    assert {one["kind"] for one in listed} >= {"Manifest"} or listed
    lance("clean --keep 1 --really")
    assert shell.user_ns["ds"].version_numbers() == [3, 7]


def test_an_unfinished_branch_is_listed_as_such_and_left_out_of_the_graph(
    lance: Lance, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(Path(uri) / "tree" / "dev" / "_versions")
    assert main(["branch", uri]) == 0
    assert "dev is unfinished" in (said := capsys.readouterr().out)
    assert "create it again from main:3" in said
    assert "branch delete dev" in said
    assert main(["log", uri, "--graph"]) == 0
    assert "dev" not in capsys.readouterr().out


@pytest.fixture
def torn(uri: str) -> Path:
    """Tear the newest manifest, as a power failure does; return it."""
    (Path(uri) / "_refs/tags/late.json").unlink()  # else it leads nowhere after the repair
    newest = min(Path(uri).glob("_versions/*.manifest"))
    newest.write_bytes(b"")
    return newest


def test_the_doctor_looks_at_what_does_not_open(
    torn: Path, uri: str, lance: Lance, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", uri]) == 1
    said = capsys.readouterr().out
    assert "is the newest valid one" in said
    assert "newest-unreadable" in said
    assert json.loads(lance(f"doctor {uri} --json --quick"))["opened_version"] == 6
    assert torn.stat().st_size == 0


def test_a_repair_is_shown_first(
    torn: Path, uri: str, lance: Lance, capsys: pytest.CaptureFixture[str]
) -> None:
    found = lance(f"doctor {uri} --repair --nobody-writes")
    assert "nothing was changed" in found.picture.text
    assert "--repair --yes --nobody-writes" in found.picture.text
    assert "lance_nb.plan_repair(" in found.picture.text
    assert found.exit_code == 1
    assert main(["doctor", uri, "--repair"]) == 1  # nobody is at the terminal
    assert "a commit may be under way" in capsys.readouterr().out
    assert torn.exists()


def test_a_repair_is_done_and_undone(
    torn: Path, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", uri, "--repair", "--yes", "--nobody-writes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["ok"], len(said["done"]), said["failed"]) == (True, 1, [])
    assert lance_nb.dataset(uri).version == 8
    assert not torn.exists()
    assert main(["doctor", uri, "--undo", said["id"]]) == 0
    assert torn.name in capsys.readouterr().out
    assert torn.read_bytes() == b""
    assert main(["doctor", uri, "--repair"]) == 1  # the damaged manifest can be quarantined again
    assert "quarantine" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_somebody_at_a_terminal_is_asked(
    answer: str, status: int, torn: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert main(["doctor", uri, "--repair", "--nobody-writes"]) == status
    assert torn.exists() == bool(status)


def test_options_of_a_repair_need_it(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", uri, "--yes"]) == 2
    assert "require --repair" in capsys.readouterr().err


def test_the_line_that_carries_a_repair_out_holds_the_uri_as_one_word(
    torn: Path, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a b; echo $HOME '\"", "esc\x1b[31m"):
        place = shutil.copytree(uri, tmp_path / name)
        assert main(["doctor", str(place), "--repair", "--nobody-writes", "--json"]) == 1
        assert torn.name in capsys.readouterr().out
        assert main(["doctor", str(place), "--repair", "--nobody-writes"]) == 1
        line = next(
            one for one in capsys.readouterr().out.splitlines() if one.startswith("to run them: ")
        ).removeprefix("to run them: ")
        if "\x1b" in name:
            assert line.startswith("#")
        else:
            assert shlex.split(line)[1:3] == ["doctor", str(place)]
