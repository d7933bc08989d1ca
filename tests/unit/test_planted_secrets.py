"""A secret planted in each form of a URL and in each kind of option is shown and kept nowhere.

Looked at are texts and pictures of every object, pickles, errors with their chained causes, what
views send to the browser, cells of notebooks, output of the command, and every file that was
written. Logs of other packages at DEBUG are theirs: fsspec names each path that it is asked for.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import pickle
import re
import socketserver
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import lance_nb
import lance_nb.widgets
from lance_nb import spark
from lance_nb.code_lines import split
from lance_nb.errors import LanceError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.browser_server import ExplorerServer
from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from lance_nb.magic import command_line
from lance_nb.magic.context import MagicContext
from lance_nb.magic.registry import parse_words
from lance_nb.spark import journal
from lance_nb.spark.plan import Label
from lance_nb.storage import conditional_put

CANARY = "PLANTED"
SCHEMES = ("s3", "gs", "az", "https", "vault")
ROWS = pa.table({
    "id": range(10),
    "text": [f"t{n}" for n in range(10)],
    "vector": pa.array([[1.0, 2.0]] * 10, pa.list_(pa.float32(), 2)),
})  # fmt: skip
# URI of a folder, with %s for a name, and options.
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "user and password": (f"s3://AKIAIOSFODNN7:{CANARY}@bucket/%s", {}),
    "password with a slash": (f"vault://me:{CANARY}%%2F{CANARY}@box/%s", {}),
    "user that is a token": (f"https://{CANARY}@host.example/%s", {}),
    "shared access signature": (f"vault://box/%s?sv=1&sig={CANARY}", {}),
    "presigned": (
        f"vault://box/%s?X-Amz-Signature={CANARY}&X-Amz-Security-Token={CANARY}",
        {},
    ),
    "keys of s3fs": (
        "s3://bucket/%s",
        {"key": f"{CANARY}1", "secret": f"{CANARY}2", "token": f"{CANARY}3",
         "client_kwargs": {"aws_session_token": f"{CANARY}4"},
         "endpoint_url": f"http://u:{CANARY}5@h:9"},
    ),
    "keys of pylance": (
        "s3://bucket/%s",
        {"aws_access_key_id": f"{CANARY}1", "AWS_SECRET_ACCESS_KEY": f"{CANARY}2",
         "session_token": f"{CANARY}3", "sse_customer_key_base64": f"{CANARY}4",
         "endpoint": f"http://h:9/?sig={CANARY}5"},
    ),
    "headers": (
        "https://host.example/%s",
        {"headers": {"Authorization": f"Bearer {CANARY}1", "x-api-key": f"{CANARY}2"},
         "client_kwargs": {"headers": {"Cookie": f"{CANARY}3"}, "auth": f"{CANARY}4"},
         "proxy": f"http://u:{CANARY}5@proxy:3128"},
    ),
    "Azure": (
        "az://container/%s",
        {"account_name": "acc", "account_key": f"{CANARY}1", "sas_token": f"?sv=1&sig={CANARY}2",
         "connection_string": f"AccountName=acc;AccountKey={CANARY}3;", "credential": f"{CANARY}4"},
    ),
    "Google": (
        "gs://bucket/%s",
        {"token": {"type": "service_account", "private_key": f"{CANARY}1"},
         "bearer_token": f"{CANARY}2"},
    ),
    "proxies": (
        "s3://bucket/%s",
        {"proxy_url": f"http://u:{CANARY}1@proxy:1", "default_headers": {"x-t": f"{CANARY}2"},
         "config_kwargs": {"proxies": {"https": f"http://u:{CANARY}3@p"}}},
    ),
    "names of other drivers": (
        "vault://box/%s",
        {"creds": f"{CANARY}1", "pat": f"{CANARY}2", "bearer": f"{CANARY}3", "jwt": f"{CANARY}4",
         "passphrase": f"{CANARY}5", "address": f"https://h/x?sig={CANARY}6",
         "hosts": ["h", f"http://u:{CANARY}7@h"]},
    ),
}  # fmt: skip
IN_URI = [name for name, (_, options) in PLACES.items() if not options]


class OpenVault(MemoryFileSystem):
    """A store that takes every option; ``problem`` is what its requests raise, if anything."""

    protocol = SCHEMES
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    problem: ClassVar[list[str]] = []
    _lock = threading.RLock()

    def __init__(self, **options: Any) -> None:
        super().__init__(skip_instance_cache=True)
        self.options = options

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        parts = urlsplit(path)
        host = parts.netloc.rpartition("@")[2]
        return (f"/{host}{parts.path}" if parts.scheme else parts.path).rstrip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        password = urlsplit(path).password
        return {} if password is None else {"password": password}

    def _fail(self) -> None:
        if self.problem:
            cause = RuntimeError(f"sent {self.options}")
            raise OSError(f"403 for {self.problem[0]}") from cause

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        self._fail()
        with self._lock:
            super().pipe_file(path, value, mode=mode)

    def cat_file(self, path: str, *args: Any, **named: Any) -> Any:
        self._fail()
        return super().cat_file(path, *args, **named)

    def info(self, path: str, **named: Any) -> Any:
        self._fail()
        return super().info(path, **named)

    def ls(self, path: str, detail: bool = True, **named: Any) -> Any:
        self._fail()
        return super().ls(path, detail=detail, **named)


class Texts:
    """Everything that was shown or kept, and where the secret stands in it."""

    def __init__(self) -> None:
        self.count = 0
        self.leaks: list[str] = []

    def add(self, place: str, text: str | bytes) -> None:
        self.count += 1
        shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if CANARY in shown:
            index = shown.index(CANARY)
            self.leaks.append(f"{place}: {shown[max(index - 60, 0) : index + 20]!r}")

    def add_object(self, name: str, value: object) -> None:
        self.add(name, f"{value!r} {value}")
        for method in ("_repr_html_", "_repr_mimebundle_"):
            draw = getattr(value, method, None)
            if draw is not None:
                self.add(f"{name}, {method}", json.dumps(draw(), default=str))
        for protocol in (0, pickle.HIGHEST_PROTOCOL):
            try:
                self.add(f"{name}, pickle", pickle.dumps(value, protocol))
            except (LanceError, TypeError, AttributeError, pickle.PicklingError) as error:
                self.add(f"{name}, no pickle", str(error))

    def add_error(self, name: str, error: BaseException) -> None:
        self.add(f"{name}, trace", "".join(traceback.format_exception_only(error)))
        cause: BaseException | None = error
        seen: list[int] = []
        while cause is not None and id(cause) not in seen:
            seen.append(id(cause))
            notes = getattr(cause, "__notes__", ())
            self.add(f"{name}, error", f"{cause!r} {cause} {vars(cause)} {notes}")
            if isinstance(cause, LanceError):
                self.add(f"{name}, pickled error", pickle.dumps(cause))
            cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)

    def attempt(self, name: str, act: Callable[[], object]) -> None:
        try:
            self.add_object(name, act())
        except (LanceError, OSError, KeyError, ValueError) as error:
            self.add_error(name, error)


@pytest.fixture
def texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Texts]:
    """Collect texts; at the end also the log of lance_nb and every file that was written."""
    classes = dict(fsspec.registry)  # of drivers that are loaded
    for scheme in SCHEMES:
        fsspec.register_implementation(scheme, OpenVault, clobber=True)
        monkeypatch.setitem(conditional_put.CONDITIONAL_PUTS, scheme, conditional_put.S3Put())
    for place in (OpenVault.store, OpenVault.problem):
        place.clear()
    OpenVault.pseudo_dirs[:] = [""]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    found = Texts()
    with caplog.at_level(logging.DEBUG, "lance_nb"):
        yield found
    OpenVault.problem.clear()
    for record in caplog.records:
        if record.name.startswith("lance_nb"):
            found.add(f"log of {record.name}", record.getMessage())
    for name, file in OpenVault.store.items():
        found.add(f"stored {name}", name.encode() + file.getvalue())
    for path in tmp_path.rglob("*"):
        if path.is_file():
            found.add(f"file {path}", path.read_bytes())
    OpenVault.store.clear()
    for scheme in SCHEMES:
        _registry.pop(scheme, None)
        if scheme in classes:
            fsspec.register_implementation(scheme, classes[scheme], clobber=True)
    assert not found.leaks, f"{len(found.leaks)} of {found.count}: " + "\n".join(found.leaks[:20])


def written(place: str) -> tuple[str, Mapping[str, Any] | None, lance_nb.LanceDataset]:
    uri, options = PLACES[place]
    root = uri % "t.lance"
    dataset = lance_nb.write_dataset(ROWS, root, storage_options=options or None)
    dataset.insert(ROWS)
    dataset.delete("id = 3")
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("v1", 1)
    dataset.create_branch("side")
    return root, options or None, lance_nb.dataset(root, storage_options=options or None)


@pytest.mark.parametrize("place", PLACES)
def test_no_object_and_no_error_shows_a_secret(texts: Texts, place: str) -> None:
    uri, options, dataset = written(place)
    file = dataset.get_fragments()[0].metadata.files[0].path
    folder = (PLACES[place][0] % "").replace("/?", "?").rstrip("/")
    database = lance_nb.database(folder, storage_options=options)
    stage = dataset.stage().delete("id = 4")
    reader = lance_nb.LanceFileReader(PLACES[place][0] % f"t.lance/data/{file}", options)
    objects = {
        "dataset": dataset, "uri": dataset.uri, "fragment": dataset.get_fragments()[0],
        "scanner": dataset.scanner(["id"], filter="id > 2"), "stats": dataset.stats,
        "inspect": dataset.inspect, "tags": dataset.tags, "branches": dataset.branches,
        "optimize": dataset.optimize, "history": dataset.history(), "diff": dataset.diff(1),
        "sql": dataset.sql("SELECT 1"), "merge": dataset.merge_insert("id"), "stage": stage,
        "verification": dataset.verify(), "session": dataset.session(), "stores": dataset.opened[0],
        "version": dataset.opened[1], "transactions": dataset.get_transactions(),
        "plan": dataset.scanner(["id"], filter="id > 2").explain_plan(), "reader": reader,
        "database": database, "database uri": database.uri, "database name": database.name,
        "place of a table": database.place("t"), "summary": database.describe("t"),
        "tables": database.tables(), "indices": dataset.list_indices(),
    }  # fmt: skip
    for name, value in objects.items():
        texts.add_object(name, value)

    def opened(name: str, version: Any = None) -> lance_nb.LanceDataset:
        return lance_nb.dataset(PLACES[place][0] % name, version, storage_options=options)

    acts: dict[str, Callable[[], object]] = {
        "open": lambda: opened("t.lance"), "open nothing": lambda: opened("none.lance"),
        "missing version": lambda: opened("t.lance", 99), "missing table": lambda: database["x"],
        "read": dataset.to_table, "missing column": lambda: dataset.to_table(["x"]),
        "write": lambda: lance_nb.write_dataset(ROWS, uri, storage_options=options),
        "insert": lambda: dataset.insert(ROWS), "update": lambda: dataset.update_config({"a": "b"}),
        "delete": lambda: dataset.delete("id = 5"), "tag": lambda: dataset.tags.create("v1", 1),
        "tags": dataset.tags.list, "compact": dataset.optimize.compact_files,
        "clean up": dataset.cleanup_old_versions, "verify": dataset.verify,
        "stage": stage.commit, "read a file": lambda: reader.read_all().to_table(),
        "tables": database.table_names,
        "unknown option": lambda: lance_nb.dataset(
            uri, storage_options={**(options or {}), "driver": "none"}
        ),
    }  # fmt: skip
    for problem in (False, True):
        if problem:
            OpenVault.problem.append(f"{uri} with {options}")
        for name, act in acts.items():
            texts.attempt(f"{name}, {'failing' if problem else 'working'}", act)
    assert texts.count > 150


def messages_of(session: Session) -> Iterator[tuple[str, str]]:
    """Send each request that the explorer knows, with a few arguments."""
    handlers = Explorer.request_handlers(session)
    for kind in handlers:
        for args in ({}, {"branch": None, "version": 3}, {"first": 0, "stop": 5, "version": 3}):
            reply, buffers = handle({"id": "1", "type": kind, "args": args}, handlers)
            yield kind, json.dumps(reply, default=repr) + repr(buffers)


@pytest.mark.parametrize("place", [*IN_URI, "keys of s3fs", "headers"])
def test_no_view_and_no_message_shows_a_secret(texts: Texts, place: str) -> None:
    uri, options, dataset = written(place)
    explorer = lance_nb.explore(uri, storage_options=options)
    assert explorer.error is None
    for name in lance_nb.widgets.__all__:
        view = getattr(lance_nb.widgets, name)
        if isinstance(view, type) and view is not Explorer:
            texts.attempt(f"view {name}", lambda view=view: view(dataset).get_state())
    texts.add("state", repr(explorer.get_state()))
    texts.attempt("page", lambda: explorer.to_html("page.html"))
    texts.add("picture", json.dumps(explorer._repr_mimebundle_(), default=str))
    for kind, reply in messages_of(Session(dataset)):
        texts.add(f"message {kind}", reply)
    session = Session(lance_nb.dataset(uri, storage_options=options))
    OpenVault.problem.append(f"{uri} with {options}")
    for kind, reply in messages_of(session):
        texts.add(f"message {kind}, failing", reply)
    broken = lance_nb.explore(uri, storage_options=options)
    assert broken.error is not None
    texts.add_error("explorer", broken.error)
    texts.add(
        "broken", repr(broken.get_state()) + json.dumps(broken._repr_mimebundle_(), default=str)
    )
    assert texts.count > 300


LINES = (
    "open {}", "log", "show", "head", "schema", "files", "branches", "tags", "verify", "doctor",
    "diff 1 2", "stats", "storage", "open none.lance", "sql SELECT count(*) FROM dataset",
    "head --where 'nope ='", "indices", "config", "explore {}",
)  # fmt: skip


@pytest.mark.parametrize("place", IN_URI)
def test_no_verb_and_no_command_shows_a_secret(texts: Texts, place: str, tmp_path: Path) -> None:
    uri, _, _ = written(place)
    context = MagicContext()
    for text in LINES:
        for is_broken in (False, True):
            OpenVault.problem[:] = [uri] if is_broken else []
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                try:
                    request = parse_words(split(text.format(repr(uri))), "%lance")
                    texts.add_object(f"%lance {text}", request.verb.run(context, request.arguments))
                except LanceError as error:
                    texts.add_error(f"%lance {text}", error)
            texts.add(f"%lance {text}, printed", shown.getvalue())
    OpenVault.problem.clear()
    missing = PLACES[place][0] % "none.lance"
    for words in (
        ["log", uri], ["show", uri, "--json"], ["verify", uri], ["doctor", uri, "--repair"],
        ["report", uri, "-o", str(tmp_path / "r.html")], ["--debug", "log", missing],
        ["lab", uri, "--version"], ["view", missing], ["export", uri, "x.csv"],
    ):  # fmt: skip
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line.main(words)
        texts.add(f"lance-nb {words[0]}", out.getvalue() + err.getvalue())
    assert not list(tmp_path.glob("*.ipynb"))


@pytest.mark.parametrize("place", IN_URI)
def test_no_page_of_the_view_command_shows_a_secret(
    texts: Texts, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, _, dataset = written(place)
    serve = ExplorerServer.serve

    def visited(server: ExplorerServer) -> None:
        """Serve while each request that the explorer knows is sent, working and failing."""
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()

        def answer(path: str, body: bytes | None = None, **headers: str) -> str:
            request = Request(f"http://127.0.0.1:{server.port}{path}", body, headers)
            with urlopen(request, timeout=60) as reply:  # noqa: S310
                text = str(reply.headers) + reply.read().decode()
            texts.add(f"answer to {path.partition('?')[0]}", text)
            return text

        try:
            page = answer(f"/?token={server.token}")
            match = re.search(r'id="session">(.*?)</script>', page)
            assert match is not None
            state = json.loads(match[1])
            headers = {"X-Lance-Token": state["token"], "X-Lance-Session": state["session"]}
            for problem in ([], [uri]):
                OpenVault.problem[:] = problem
                for kind in Explorer.request_handlers(Session(dataset)):
                    body = json.dumps({"id": kind, "type": kind, "args": {}}).encode()
                    answer("/message", body, **headers)
                assert '"ok": ' in answer("/events", **headers)
            assert '"error"' in answer(f"/?token={server.token}")  # a dataset that fails to open
        finally:
            server.stop()
            thread.join()

    monkeypatch.setattr(ExplorerServer, "serve", visited)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        assert command_line.main(["view", uri, "--no-browser"]) == 0
    texts.add("lance-nb view", output.getvalue())
    assert output.getvalue().startswith("exploring ")


HEADERS = {"x-api-key": f"{CANARY}-1", "Authorization": f"Bearer {CANARY}-2"}
# What a server of a namespace answers, with %s for a header that it got.
ANSWERS = {
    "tables": 'HTTP/1.0 200 OK\r\n\r\n{"tables": ["a"], "namespaces": []}',
    "no status line": "%s\r\n\r\n",
    "an error": "HTTP/1.0 500 %s\r\n\r\n%s",
    "another version": "HTTP/%s 200 OK\r\n\r\n",
    "a redirect": "HTTP/1.0 302 %s\r\nLocation: http://127.0.0.1:1/?%s\r\n\r\n",
    "no JSON": "HTTP/1.0 200 OK\r\n\r\n%s",
    "no chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("header", HEADERS)
def test_no_header_of_a_namespace_is_shown(texts: Texts, header: str, name: str) -> None:
    class Echo(socketserver.StreamRequestHandler):
        """Repeats a header where the answer has %s."""

        def handle(self) -> None:
            lines = [self.rfile.readline().decode().strip()]
            while lines[-1]:
                lines.append(self.rfile.readline().decode().strip())
            received = dict(line.lower().split(": ", 1) for line in lines[1:-1])
            assert received["x-api-key"] == HEADERS["x-api-key"].lower()
            answer = ANSWERS[name].replace("%s", HEADERS[header].removeprefix("Bearer "))
            self.wfile.write(answer.encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        uri = f"rest+http://127.0.0.1:{server.server_address[1]}"
        options = {f"headers.{key}": value for key, value in HEADERS.items()}
        database = lance_nb.database(uri, storage_options=options, headers=HEADERS)
        explorer = lance_nb.explore(database)
        acts: dict[str, Callable[[], object]] = {
            "database": lambda: database, "names": database.table_names,
            "tables": database.tables, "a table": lambda: database["a"],
            "place": lambda: database.place("a"), "summary": lambda: database.describe("a"),
            "explorer": lambda: f"{explorer.get_state()} {explorer.error}",
            "page": lambda: explorer.to_html("page.html"),
        }  # fmt: skip
        for act, run in acts.items():
            texts.attempt(f"{act}, {name}", run)
        explorer.close()
        server.shutdown()
    assert texts.count > len(acts)


@pytest.mark.parametrize("place", PLACES)
def test_no_plan_and_no_journal_of_a_job_keeps_a_secret(texts: Texts, place: str) -> None:
    _, _, dataset = written(place)
    plan = spark.plan_delete(dataset, "id < 5")
    texts.add("plan", f"{plan!r} {plan} {plan.tasks!r}")
    journal.keep(plan, [task.run() for task in plan.tasks], Label("why"))
    texts.add("jobs", f"{spark.unfinished()}")
    OpenVault.problem.append(f"{PLACES[place]}")
    for task in plan.tasks:
        texts.attempt("task", task.run)
    assert list(Path("cache").rglob("*.json"))
