from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_nb.spark import sessions

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PYSPARK_UDS_MODE", raising=False)
    sessions._socket_folder.cache_clear()
    yield
    sessions._socket_folder.cache_clear()


def at(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder))


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # a relative name is short, wherever tests have their files
    at(monkeypatch, Path())
    return tmp_path


def test_workers_on_this_machine_talk_through_files_that_nobody_else_can_open(short: Path) -> None:
    own = sessions._own("local[2]")
    assert own["spark.master"] == "local[2]"
    assert own[ENABLED] == "true"
    folder = short / own[FOLDER]
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
    assert sessions._own("local[*]")[FOLDER] == own[FOLDER]  # one for the process


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://host"])
def test_executors_elsewhere_are_left_as_they_are(master: str, short: Path) -> None:
    assert ENABLED not in sessions._own(master)
    assert not list(short.iterdir())


def test_what_the_user_chose_stays(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_UDS_MODE", "false")
    assert ENABLED not in sessions._own("local[2]")


def test_a_machine_without_such_sockets_has_none(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX", raising=False)
    assert ENABLED not in sessions._own("local[2]")


def test_a_folder_with_too_long_a_name_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, tmp_path / ("long" * 20))
    assert ENABLED not in sessions._own("local[2]")
