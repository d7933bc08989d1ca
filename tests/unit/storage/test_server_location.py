"""What a server of a catalog may name, and which credentials go where it said."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lance_nb.dataset.database import TablePlace
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.storage.fsspec_options import ONLY_GIVEN
from lance_nb.storage.registry import open_store
from lance_nb.storage.server_location import checked_location

FAR = "https://93.184.216.34"
PRIVATE = "https://10.1.2.3"
HERE = "http://127.0.0.1:8080"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "CANARY-KEY",
    "AWS_SECRET_ACCESS_KEY": "CANARY-SECRET",
    "AWS_SESSION_TOKEN": "CANARY-TOKEN",
}


@pytest.mark.parametrize("server", [FAR, HERE])
@pytest.mark.parametrize(
    "uri",
    [
        "dir:///etc", "simplecache::s3://b/x", "simplecache:///etc", "filecache:///etc",
        "zip://l::file:///etc/x.zip", "reference://x", "http://127.0.0.1/x", "https://host/x",
        "ftp://host/x", "memory://x", "github://a:b@/x", "s3+ddb://b/x", "hf://datasets/a",
        "s3://KEY:SECRET@b/x", "s3://evil.test:80/x", "s3://b?x/y", "s3:///x", "gs://a@b/x",
        "az://c@evil.test/x", "abfss://c@account.dfs.core.windows.net.evil.test/x",
        "s3://b/x::file:///etc",
    ],
)  # fmt: skip
def test_other_locations_are_refused(server: str, uri: str) -> None:
    with pytest.raises(LanceError):
        checked_location(uri, {}, None, server)


@pytest.mark.parametrize("uri", ["/etc", "file:///etc", "local:///etc", "~/x", "x", "S3:/b"])
def test_only_a_server_on_this_machine_names_local_folders(uri: str) -> None:
    with pytest.raises(NotSupportedError, match="only a server on this machine"):
        checked_location(uri, {}, None, FAR)
    assert checked_location(uri, {}, None, HERE) == (uri, None)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://b/x", {"aws_access_key_id": "k", "secret": "s", "AWS_SESSION_TOKEN": "t"}),
        ("s3a://b.c/x", {"region": "eu-central-1", "expires_at_millis": 17}),
        ("gs://b/x", {"google_storage_token": "t"}),
        ("az://c/x", {"azure_storage_account_name": "acc", "sas_token": "sig=1"}),
        ("abfss://c@account.dfs.core.windows.net/x", {}),
    ],
)
def test_folders_of_object_stores_may_be_named(uri: str, options: dict[str, Any]) -> None:
    assert checked_location(uri, options, None, FAR) == (uri, options or None)


@pytest.mark.parametrize(
    ("uri", "option", "value"),
    [
        ("s3://b/x", "driver", "fsspec"), ("s3://b/x", "manifest_store", "sqlite:///etc/x"),
        ("s3://b/x", "dynamodb_endpoint", "http://127.0.0.1"), ("s3://b/x", "profile", "work"),
        ("s3://b/x", "proxy_url", "http://evil.test"), ("s3://b/x", "client_kwargs", {}),
        ("s3://b/x", "web_identity_token_file", "/etc/passwd"),
        ("s3://b/x", "metadata_endpoint", "http://evil.test"), ("s3://b/x", "requester_pays", True),
        ("s3://b/x", "endpoint_url_sts", "http://evil.test"), ("s3://b/x", ONLY_GIVEN, False),
        ("s3://b/x", "region", "evil.test/#"), ("s3://b/x", "key", {"a": 1}),
        ("s3://b/x", "key", "a\r\nX-Evil: 1"), ("s3://b/x", "default_headers", {"a": "b"}),
        ("gs://b/x", "google_service_account", "/etc/passwd"), ("gs://b/x", "token", "/x.json"),
        ("gs://b/x", "service_account_key", "{}"), ("gs://b/x", "endpoint_url", "http://evil.test"),
        ("az://c/x", "azure_storage_account_name", "evil.test/"),
        ("az://c/x", "endpoint", "http://evil.test"), ("az://c/x", "authority_host", "evil.test"),
        ("az://c/x", "connection_string", "BlobEndpoint=http://evil.test"),
        ("/x", "key", "value"),
    ],
)  # fmt: skip
def test_other_options_are_refused(uri: str, option: str, value: object) -> None:
    with pytest.raises(NotSupportedError) as caught:
        checked_location(uri, {option: value}, None, HERE if uri == "/x" else FAR)
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "servers"),
    [
        ("http://127.0.0.1:9000", {HERE}), ("http://localhost", {HERE}), ("http://[::1]", {HERE}),
        ("http://[::ffff:127.0.0.1]", {HERE}), ("http://0.0.0.0", {HERE}),
        ("http://2130706433", {HERE}), ("http://0x7f.1", {HERE}), ("http://a.localhost", {HERE}),
        ("http://169.254.169.254", {HERE}), ("http://10.0.0.9", {HERE, PRIVATE}),
        ("http://93.184.216.34", {HERE, PRIVATE, FAR}), ("file:///etc", set()),
        ("http://u:p@93.184.216.34", set()), ("http://[", set()), ("http://h:99999", set()),
    ],
)  # fmt: skip
def test_endpoints_are_no_nearer_than_their_server(endpoint: str, servers: set[str]) -> None:
    for server in (FAR, PRIVATE, HERE):
        if server in servers:
            checked_location("s3://b/x", {"endpoint": endpoint}, None, server)
        else:
            with pytest.raises(NotSupportedError, match="endpoint"):
                checked_location("s3://b/x", {"endpoint": endpoint}, None, server)


def test_credentials_of_the_caller_go_to_no_endpoint_of_a_server() -> None:
    own = {"key": "mine", "secret": "mine", "token": "mine", "default_headers": {"a": "mine"},
           "sse_customer_key_base64": "mine", "region": "eu"}  # fmt: skip
    server = {"aws_endpoint_url": "https://93.184.216.34"}
    _, options = checked_location("s3://b/x", server, own, FAR)
    assert options == {**server, "skip_signature": True, "region": "eu", ONLY_GIVEN: True}
    own["endpoint_url"] = "https://store.test"  # the caller's own place
    assert checked_location("s3://b/x", server, own, FAR)[1] == own


class _Listener:
    """A server that says no and remembers what was sent."""

    def __init__(self) -> None:
        requests: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(f"{self.path}\n{self.headers}")
                self.send_error(403)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.requests = requests
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def listener() -> Iterator[_Listener]:
    listener = _Listener()
    yield listener
    listener.server.shutdown()
    listener.server.server_close()


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"aws_access_key_id": "THEIRS", "aws_secret_access_key": "theirs"},
        {"aws_access_key_id": "THEIRS", "aws_secret_access_key": "theirs", "token": "their-token"},
        {"aws_access_key_id": "THEIRS"},
        {"session_token": "their-token", "skip_signature": "false"},
    ],
)
def test_credentials_of_the_environment_go_to_no_endpoint_of_a_server(
    listener: _Listener, named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    named = {**named, "endpoint": listener.url, "region": "us-east-1"}
    uri, options = checked_location("s3://b/t", named, {"key": "CANARY", "secret": "CANARY"}, HERE)
    with pytest.raises(LanceError):
        open_store(uri, options).read("x")
    assert listener.requests
    assert not [text for text in listener.requests if "CANARY" in text]
    is_signed = any("THEIRS" in text for text in listener.requests)
    assert is_signed == ("aws_secret_access_key" in named)


def test_a_pickled_place_takes_no_credentials_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    named = {"endpoint": "https://93.184.216.34", "key": "THEIRS", "secret": "CANARY-2"}
    data = pickle.dumps(TablePlace.of(*checked_location("s3://b/t", named, None, FAR)))
    assert b"CANARY" not in data
    with pytest.raises(InvalidInputError, match="open the table by its database"):
        pickle.loads(data)  # noqa: S301


@pytest.mark.parametrize("name", ["AWS_SSE_CUSTOMER_KEY_BASE64", "aws_sse_kms_key_id"])
def test_no_encryption_key_of_the_environment_goes_to_an_endpoint_of_a_server(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """obstore would send it with each request, also to where the endpoint redirects to."""
    pytest.importorskip("obstore")
    named = {"endpoint": "https://93.184.216.34", "access_key_id": "A", "secret_access_key": "B"}
    uri, options = checked_location("s3://b/t", named, None, FAR)
    monkeypatch.setenv(name, "TOPSECRET")
    with pytest.raises(NotSupportedError, match=f"environment has {name}") as caught:
        open_store(uri, options)
    assert "TOPSECRET" not in str(caught.value)
    monkeypatch.delenv(name)
    assert open_store(uri, options).uri == "s3://b/t"
