from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.browser_server import MAX_BODY_BYTES, MAX_SESSIONS, ExplorerServer
from lance_nb.explorer.html_page import content_hash
from lance_nb.magic import command_line
from lance_nb.magic.command_line import main
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import hostile_dataset, small_dataset
from tests.support.markup_payloads import PAYLOADS


@pytest.fixture
def server() -> Iterator[ExplorerServer]:
    found = ExplorerServer(lambda: Explorer(small_dataset()))
    thread = threading.Thread(target=found.serve)
    thread.start()
    yield found
    found.stop()
    thread.join(10)
    found.close()


def ask(
    server: ExplorerServer, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return found


def given_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="session">(.*?)</script>', page)
    assert found is not None
    given: dict[str, Any] = json.loads(found.group(1))
    return given


def opened(server: ExplorerServer) -> dict[str, str]:
    """Open a page; returns the headers of its requests."""
    status, _, page = ask(server, "GET", f"/?token={server.token}")
    assert status == 200
    given = given_of(page)
    return {"X-Lance-Token": given["token"], "X-Lance-Session": given["session"]}


def test_a_page_talks_to_its_explorer(server: ExplorerServer) -> None:
    headers = opened(server)
    place = {"branch": None, "version": 4, "offset": 0, "limit": 5, "first_column": 0}
    for number, (kind, args) in enumerate(
        [("rows", place | {"num_columns": 2}), ("travel", {"ref": "2"})]
    ):
        body = json.dumps({"id": str(number), "type": kind, "args": args}).encode()
        assert ask(server, "POST", "/message", body, **headers)[0] == 200
    status, _, text = ask(server, "GET", "/events", **headers)
    rows, screen, travelled = json.loads(text)
    assert status == 200
    assert rows["content"]["ok"]
    assert len(rows["buffers"]) == rows["content"]["num_buffers"] > 0
    assert set(rows["buffers"][0]) == {"$bytes"}
    assert (screen["trait"], screen["value"]["version"]) == ("screen", 2)
    assert travelled["content"]["result"] == {"label": "main:2"}


def test_two_pages_have_an_explorer_each_and_the_oldest_of_many_is_closed(
    server: ExplorerServer,
) -> None:
    pages = [opened(server) for _ in range(MAX_SESSIONS + 1)]
    body = json.dumps({"id": "1", "type": "travel", "args": {"ref": "2"}}).encode()
    assert ask(server, "POST", "/message", body, **pages[1])[0] == 200
    assert ask(server, "POST", "/message", body, **pages[0])[0] == 404
    versions = [session.explorer.version for session in server._sessions.values()]
    assert versions == [2, *[4] * (MAX_SESSIONS - 1)]


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {}),
        ("GET", "/?token=guess", {}),
        ("GET", "/?token=", {"X-Lance-Token": "guess"}),
        ("GET", "/events", {}),
        ("POST", "/message", {"X-Lance-Token": "guess", "X-Lance-Session": "guess"}),
    ],
)
def test_without_the_token_nothing_is_answered(
    server: ExplorerServer, method: str, path: str, headers: dict[str, str]
) -> None:
    status, _, text = ask(server, method, path, b"{}" if method == "POST" else None, **headers)
    assert (status, text) == (403, "Forbidden")
    assert not server._sessions


def test_another_host_name_is_refused_although_the_token_is_right(server: ExplorerServer) -> None:
    """A name of somebody else that leads to this machine (DNS rebinding)."""
    for host in ("evil.test", f"evil.test:{server.port}", "127.0.0.1"):
        assert ask(server, "GET", f"/?token={server.token}", Host=host)[0] == 403
    assert ask(server, "GET", f"/?token={server.token}", Host=f"localhost:{server.port}")[0] == 200


def test_what_is_no_message_is_refused_and_the_server_goes_on(server: ExplorerServer) -> None:
    headers = opened(server)
    assert ask(server, "POST", "/message", b"{", **headers)[0] == 400
    assert ask(server, "POST", "/message", b"\xff\xfe", **headers)[0] == 400
    assert ask(server, "POST", "/message", b"[" * 150_000, **headers)[0] == 400
    for length in ("9" * 5000, "\u0663".encode().decode("latin-1"), "-1", "1e3"):
        assert ask(server, "POST", "/message", None, **{"Content-Length": length})[0] == 413
    assert ask(server, "POST", "/other", b"{}", **headers)[0] == 404
    assert ask(server, "GET", "/other", **headers)[0] == 404
    large = b"x" * (MAX_BODY_BYTES + 1)
    assert ask(server, "POST", "/message", large, **headers)[0] == 413
    for body in (b"[]", b"null", b'{"id": "1", "type": "nothing"}'):
        assert ask(server, "POST", "/message", body, **headers)[0] == 200
    answers = json.loads(ask(server, "GET", "/events", **headers)[2])
    assert [one["content"]["ok"] for one in answers] == [False, False, False]


def test_it_listens_on_this_machine_only_and_says_so_in_a_policy(server: ExplorerServer) -> None:
    assert server._server.server_address[0] == "127.0.0.1"
    _, headers, page = ask(server, "GET", f"/?token={server.token}")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers
    policy = re.search(r'Security-Policy" content="([^"]*)"', page)
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert policy is not None
    assert script is not None
    assert f"script-src '{content_hash(script.group(1))}' blob:;" in policy.group(1)
    assert "connect-src 'self'" in policy.group(1)
    assert "unsafe" not in policy.group(1)


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_texts_end_no_block_of_the_page(payload: str) -> None:
    server = ExplorerServer(lambda: Explorer(hostile_dataset(payload)))
    page = server.page()
    server.close()
    assert page.count("<script") == page.count("</script>") == 3
    head, given = page.partition("<style>")[0], given_of(page)
    assert set(re.findall(r"<(\w+)", head)) <= {"html", "head", "meta", "link", "title"}
    assert given["state"]["screen"]["error"] is None


def test_the_command_serves_until_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = worn_dataset(tmp_path / "worn.lance").uri
    shown: list[str] = []
    monkeypatch.setattr(command_line.webbrowser, "open", shown.append)

    def serve(server: ExplorerServer) -> None:
        assert "worn.lance" in server.page()
        raise KeyboardInterrupt

    monkeypatch.setattr(ExplorerServer, "serve", serve)
    assert main(["view", uri]) == 0
    said = capsys.readouterr().out
    assert shown[0] in said
    assert re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{30,}", said)
    assert said.endswith("ended\n")
    assert main(["view", uri, "--no-browser", "--read-only"]) == 0
    assert len(shown) == 1


def test_the_command_ends_on_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = worn_dataset(tmp_path / "worn.lance").uri
    previous = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(
        ExplorerServer, "serve", lambda _: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(10)
    )
    if previous is signal.SIG_DFL:  # which would end the tests
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert main(["view", uri, "--no-browser"]) == 0
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert capsys.readouterr().out.endswith("ended\n")


@pytest.mark.parametrize(
    "words",
    [[], ["a", "b"], ["a", "--port"], ["a", "--port", "99999"], ["a", "--host"], ["no-such.lance"]],
)
def test_the_command_refuses_in_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lance-nb: ")
    assert captured.err.count("\n") == 1
