"""Folders of tables and the REST form of the Lance namespace."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import database as module
from lance_nb.dataset.database import TableListing
from lance_nb.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    NotSupportedError,
    StorageError,
)
from lance_nb.storage import server_location

ROWS = pa.table({"id": range(100)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "shop_db"
    for name in ("photos", "orders"):
        lance_nb.write_dataset(ROWS, place / f"{name}.lance")
    lance_nb.dataset(place / "orders.lance").delete("id < 50")
    (place / "notes").mkdir()
    (place / "readme.lance").write_text("a file")
    return place


def test_a_folder_has_the_tables_that_end_with_lance(folder: Path) -> None:
    db = lance_nb.database(folder)
    assert db.table_names() == ["orders", "photos"]
    assert (list(db), len(db), db.name) == (["orders", "photos"], 2, "shop_db")
    assert db.dataset("orders").count_rows() == 50
    assert db["orders"].version == 2
    assert db.dataset("orders", 1).count_rows() == 100
    assert lance_nb.database(folder / "nothing").table_names() == []
    with pytest.raises(DatasetNotFoundError, match="no such table"):
        db.dataset("nothing")
    with pytest.raises(lance_nb.errors.ArgumentError):
        db.dataset("")


def test_each_table_is_described_also_one_that_cannot_be_opened(folder: Path) -> None:
    (folder / "broken.lance" / "_versions").mkdir(parents=True)
    (folder / "broken.lance" / "_versions" / "1.manifest").write_bytes(b"damaged")
    table = lance_nb.database(folder).tables()
    rows = {one["name"]: one for one in table.to_pylist()}
    assert set(rows) == {"broken", "orders", "photos"}
    assert rows["photos"]["health"] == "ok"
    assert rows["orders"]["health"] == "50% of the rows are deleted"
    assert rows["broken"]["health"].startswith("cannot be opened: ")
    assert rows["broken"]["num_rows"] is None
    orders = rows["orders"]
    assert (orders["num_rows"], orders["num_deleted_rows"], orders["num_versions"]) == (50, 50, 2)
    assert orders["num_bytes"] > 0
    assert orders["committed"] is not None
    some = lance_nb.database(folder).summaries(["photos"])
    assert [one.name for one in some] == ["photos"]


def test_memory_and_other_file_systems_have_folders(tmp_path: Path) -> None:
    lance_nb.write_dataset(ROWS, "memory://of_tables/a.lance")
    assert lance_nb.database("memory://of_tables").table_names() == ["a"]
    lance_nb.write_dataset(ROWS, tmp_path / "b.lance")
    assert lance_nb.database(f"local://{tmp_path}").table_names() == ["b"]


def test_a_directory_namespace_names_tables_of_other_folders(folder: Path) -> None:
    _manifest(folder, [("team", "namespace", None), ("team$x", "table", "0f_team$x")])
    lance_nb.write_dataset(ROWS.slice(0, 7), folder / "0f_team$x")
    db = lance_nb.database(folder)
    assert db.table_names() == ["orders", "photos", "team$x"]
    assert db.dataset("team$x").count_rows() == 7


@pytest.mark.parametrize("place", ["../outside", "/etc", "a/../../b", "%2e%2e/x"])
def test_a_directory_namespace_names_nothing_outside(folder: Path, place: str) -> None:
    _manifest(folder, [("x", "table", place)])
    with pytest.raises(CorruptFileError):
        lance_nb.database(folder).table_names()


def test_another_table_is_no_directory_namespace(folder: Path) -> None:
    lance_nb.write_dataset(ROWS, folder / "__manifest")
    with pytest.raises(CorruptFileError, match="a table of objects"):
        lance_nb.database(folder).table_names()


def _manifest(folder: Path, objects: list[tuple[str, str, str | None]]) -> None:
    names = ("object_id", "object_type", "location")
    columns = zip(names, zip(*objects, strict=True), strict=True)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns})
    lance_nb.write_dataset(table, folder / "__manifest")


def test_too_many_tables_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLES_MAX", 1)
    with pytest.raises(NotSupportedError, match="more than 1 tables"):
        lance_nb.database(folder).table_names()


# --- REST -----------------------------------------------------------------------------------------

Answer = Callable[[str, str, dict[str, list[str]], Any], Any]


class _Server:
    """A server of the namespace: ``answer`` gets method, path, query and body."""

    def __init__(self) -> None:
        self.answer: Answer = lambda *_: {}
        self.reason: str | None = None
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                self._answer(json.loads(self.rfile.read(size)))

            def _answer(self, body: Any) -> None:
                parts = urlsplit(self.path)
                outer.requests.append((self.command, self.path, dict(self.headers)))
                found = outer.answer(self.command, unquote(parts.path), parse_qs(parts.query), body)
                status, headers = 200, {}
                if isinstance(found, tuple):
                    status, headers, found = found
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status, outer.reason)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"rest+http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server()
    yield made
    made.close()


def test_a_rest_namespace_is_listed_by_pages_and_levels(folder: Path, server: _Server) -> None:
    def answer(method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        match method, path:
            case "GET", "/v1/namespace/$/table/list" if "page_token" not in query:
                return {"tables": ["orders"], "page_token": "p 2"}
            case "GET", "/v1/namespace/$/table/list":
                assert query["page_token"] == ["p 2"]
                return {"tables": ["photos"]}
            case "GET", "/v1/namespace/$/list":
                return {"namespaces": ["team"]}
            case "GET", "/v1/namespace/team/table/list":
                return {"tables": ["x"], "page_token": None}
            case "GET", "/v1/namespace/team/list":
                return {"namespaces": []}
            case "POST", "/v1/table/orders/describe":
                assert body == {"id": ["orders"]}
                return {"location": str(folder / "orders.lance"), "storage_options": None}
            case "POST", "/v1/table/team$x/describe":
                assert body == {"id": ["team", "x"]}
                return {"location": str(folder / "photos.lance")}
        return 404, {}, {"error": "no such table", "code": 4}

    server.answer = answer
    db = lance_nb.database(server.uri, headers={"x-api-key": "secret"})
    assert db.table_names() == ["orders", "photos", "team$x"]
    assert db.dataset("orders", 1).count_rows() == 100
    assert db["team$x"].count_rows() == 100
    assert {one[2]["X-Api-Key"] for one in server.requests} == {"secret"}
    assert "secret" not in repr(db)
    with pytest.raises(DatasetNotFoundError, match="no such table"):
        db.dataset("photos")
    described = db.describe("photos")
    assert (described.can_open, described.health[:16]) == (False, "cannot be opened")


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (b"not json", CorruptFileError, "JSON"),
        (b"[" * 100_000, CorruptFileError, "JSON"),
        ([1], CorruptFileError, "object of JSON"),
        ({"tables": [1]}, CorruptFileError, "list of str as 'tables'"),
        ({}, CorruptFileError, "list of str as 'tables'"),
        ((500, {}, b"oops"), StorageError, "answered 500"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), StorageError, "answered 302"),
        ({"tables": ["x"] * 20_001, "page_token": "y"}, NotSupportedError, "more than"),
    ],
)
def test_other_answers_are_errors(
    server: _Server, answer: Any, error: type[Exception], message: str
) -> None:
    server.answer = lambda *_: answer
    with pytest.raises(error, match=message):
        lance_nb.database(server.uri).table_names()


def test_an_answer_is_bounded(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_BYTES_MAX", 10)
    server.answer = lambda *_: {"tables": ["a long name"]}
    with pytest.raises(CorruptFileError, match="at most 10 bytes"):
        lance_nb.database(server.uri).table_names()


@pytest.mark.parametrize("answer", [{}, {"location": 1}, {"location": "x", "storage_options": 1}])
def test_a_description_without_a_place_is_an_error(server: _Server, answer: Any) -> None:
    server.answer = lambda *_: answer
    with pytest.raises(CorruptFileError, match="a location of str"):
        lance_nb.database(server.uri).dataset("x")


def test_a_far_server_cannot_name_local_folders(
    server: _Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = lambda *_: {"location": str(folder / "photos.lance")}
    monkeypatch.setattr(server_location, "_reach", lambda *_, **__: 0)
    with pytest.raises(NotSupportedError, match="only a server on this machine"):
        lance_nb.database(server.uri).dataset("photos")


def test_options_of_the_caller_come_first(server: _Server) -> None:
    server.answer = lambda *_: {
        "location": "s3://bucket/x", "storage_options": {"key": "theirs", "region": "eu"},
    }  # fmt: skip
    place = lance_nb.database(server.uri, storage_options={"key": "mine"}).place("x")
    assert place.storage_options == {"key": "mine", "region": "eu"}
    assert "mine" not in repr(place)


def test_pickles_hold_no_credentials(folder: Path, server: _Server) -> None:
    copy = pickle.loads(pickle.dumps(lance_nb.database(folder)))  # noqa: S301
    assert copy.table_names() == ["orders", "photos"]
    secrets = {"aws_secret_access_key": "CANARY-1", "token": "CANARY-2", "region": "eu"}
    server.answer = lambda *_: {"location": "s3://bucket/x"}
    db = lance_nb.database(server.uri, storage_options=secrets)
    for value in (db, db.place("x")):
        assert b"CANARY" not in pickle.dumps(value)
    with pytest.raises(NotSupportedError, match="not pickled"):
        pickle.dumps(TableListing(["x"], db._catalog.place))
    with pytest.raises(NotSupportedError, match="not pickled"):
        pickle.dumps(lance_nb.database(server.uri, headers={"x-api-key": "CANARY-3"}))


def test_a_server_that_repeats_a_header_does_not_bring_it_into_an_error(server: _Server) -> None:
    server.answer = lambda *_: (500, {}, b"")
    server.reason = "you sent CANARY-3"
    with pytest.raises(StorageError) as caught:
        lance_nb.database(server.uri, headers={"x-api-key": "CANARY-3"}).table_names()
    assert "you sent ***" in str(caught.value)
    assert "CANARY" not in repr(caught.value)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"x-api-key": "CANARY\n"}, "'x-api-key' has a line break"),
        ({"Authorization": "Bearer CANARY\r\nHost: x"}, "'Authorization' has a line break"),
        ({"x-api-key": "CANARY€"}, "'x-api-key' has a line break or another"),
        ({"x-api-key": b"CANARY"}, "takes a str, not bytes"),
        ({"x api key": "CANARY"}, "not the name of a header"),
        ({"": "CANARY"}, "not the name of a header"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_value(
    server: _Server, headers: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        lance_nb.database(server.uri, headers=headers).table_names()
    assert "CANARY" not in f"{caught.value!r} {caught.value}"
    assert server.requests == []


@pytest.mark.parametrize(
    "uri", ["rest+http://", "rest+http://me:pw@host", "rest+http://host/?a=1", "rest+https://#x"]
)
def test_addresses_with_other_parts_are_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="HOST"):
        lance_nb.database(uri)


def test_headers_are_for_servers(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="REST namespace"):
        lance_nb.database(folder, headers={"a": "b"})


def test_a_server_that_is_not_there_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="cannot be reached"):
        lance_nb.database("rest+http://127.0.0.1:1").table_names()
