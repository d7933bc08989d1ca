"""Handles travel to other processes: the version is pinned, credentials stay behind."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    DatasetNotFoundError,
    InvalidInputError,
    NotFoundError,
    NotSupportedError,
    VersionNotFoundError,
)
from lance_nb.file.opening import open_data_file
from lance_nb.session.public_location import PublicLocation
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage import meter

CANARY = "TOPSECRET-canary-42"
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop), "text": [f"t{n}" for n in range(start, stop)]})


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    """Three versions: 10 rows, 20 in two fragments, 18 after a deletion."""
    uri = tmp_path / "d.lance"
    made = lance_nb.write_dataset(rows(0, 10), uri)
    made.insert(rows(10, 20))
    made.delete("id IN (3, 14)")
    return lance_nb.dataset(uri)


def returned(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))  # noqa: S301 - made here


WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"protocol {one}": (lambda value, one=one: returned(value, one)) for one in PROTOCOLS},
}


@pytest.mark.parametrize("way", WAYS)
def test_handles_read_the_same_afterwards(dataset: LanceDataset, way: str):
    again = WAYS[way]
    fragment = dataset.get_fragments()[1]
    scan = {"filter": "id > 5", "columns": {"n": "id * 2"}, "limit": 9, "with_row_id": True}
    builder = lance_nb.ScannerBuilder(dataset).filter("id < 9").limit(4)
    assert again(dataset).to_table() == dataset.to_table()
    assert again(fragment).to_table() == fragment.to_table()
    assert again(fragment).metadata == fragment.metadata
    assert again(dataset.scanner(**scan)).to_table() == dataset.scanner(**scan).to_table()
    of_fragment = dataset.scanner(fragments=[fragment], filter=pc.field("id") > 15)
    assert again(of_fragment).count_rows() == 4
    assert again(builder).to_scanner().to_table() == builder.to_scanner().to_table()
    assert again(dataset.stats)() == dataset.stats()
    assert again(dataset.inspect).fragments() == dataset.inspect.fragments()
    assert again(dataset.sql("SELECT count(*) AS n FROM dataset")).build().to_batch_records()
    path = f"{dataset.uri}/data/{fragment.metadata.files[0].path}"
    reader = lance_nb.LanceFileReader(path, columns=["text"])
    assert again(reader).read_all().to_table() == reader.read_all().to_table()
    merge = again(dataset.merge_insert("id").when_not_matched_insert_all())
    assert merge.execute(rows(18, 23))["num_inserted_rows"] == 3


@pytest.mark.parametrize("way", WAYS)
def test_values_are_equal_afterwards(dataset: LanceDataset, way: str):
    dataset.tags.create("seen", 2)
    metadata = [one.metadata for one in dataset.get_fragments()]
    operations = lance_nb.LanceOperation
    plan = lance_nb.Compaction.plan(dataset, {"target_rows_per_fragment": 100})
    values = [
        metadata,
        dataset.lance_schema,
        operations.Append(metadata),
        operations.Overwrite(dataset.lance_schema, metadata),
        operations.Delete(metadata, [1], "id = 1"),
        *dataset.get_transactions(),
        dataset.history(),
        plan.tasks[0].fragments,
        VersionNotFoundError("x", 3, "1-2"),
    ]
    for value in values:
        made = WAYS[way](value)
        if isinstance(value, Exception):
            assert (type(made), str(made)) == (type(value), str(value))
        else:
            assert made == value
    assert WAYS[way](dataset.tags).get_version("seen") == 2
    task = WAYS[way](plan.tasks[0])
    made = WAYS[way](task.execute(WAYS[way](dataset)))
    assert lance_nb.Compaction.commit(dataset, [made]).fragments_removed == 2
    assert dataset.count_rows() == 18


def test_copies_move_apart_and_share_what_was_read(dataset: LanceDataset, monkeypatch: Any):
    dataset.to_table()
    opened = []
    monkeypatch.setattr(
        "lance_nb.table.file_cache.open_data_file",
        lambda *given: opened.append(given) or open_data_file(*given),
    )
    for made in (copy.copy(dataset), copy.deepcopy(dataset)):
        made.to_table()
        assert not opened
        made.update_config({uuid4().hex: "1"})
        assert made.version > dataset.version == 3
    memo = copy.deepcopy([dataset, dataset])
    assert memo[0] is memo[1]


def test_unpickling_sends_no_request_and_pins_the_version(dataset: LanceDataset):
    payloads = [
        pickle.dumps(one)
        for one in (dataset, dataset.get_fragments()[0], dataset.scanner(filter="id > 1"))
    ]
    dataset.insert(rows(20, 30))
    before = meter.reading()
    again, fragment, scan = map(pickle.loads, payloads)
    assert (again.version, again.branch, again.uri) == (3, None, dataset.uri)
    assert returned(again).version == 3  # a handle that was never opened travels on
    assert meter.reading() == before
    assert again.count_rows() == scan.count_rows() + 2 == 18
    assert fragment.count_rows() == 9
    again.insert(rows(20, 21))
    assert again.version == 5


@pytest.mark.parametrize("kind", ["tag", "branch", "asof", "detached", "old names", "clone"])
def test_every_way_to_open_a_version(dataset: LanceDataset, kind: str, tmp_path: Path):
    uri = dataset.uri
    if kind == "tag":
        dataset.tags.create("first", 1)
        opened = lance_nb.dataset(uri, "first")
        dataset.tags.update("first", 3)
    elif kind == "branch":
        opened = dataset.create_branch("side", 2)
        opened.insert(rows(50, 51))
    elif kind == "asof":
        opened = lance_nb.dataset(uri, asof=dataset.version_info(2).timestamp)
        assert opened.version == 2
    elif kind == "detached":
        operation = lance_nb.LanceOperation.Append(lance_nb.write_fragments(rows(30, 33), uri))
        opened = LanceDataset.commit(uri, operation, read_version=3, detached=True)
        assert opened.version >> 63
    elif kind == "old names":
        opened = lance_nb.write_dataset(
            rows(0, 5), tmp_path / "old.lance", enable_v2_manifest_paths=False
        )
    else:
        opened = dataset.shallow_clone(tmp_path / "clone.lance", 2)
    made = returned(opened)
    assert (made.version, made.branch) == (opened.version, opened.branch)
    assert made.to_table() == opened.to_table()
    assert returned(opened.scanner(["id"])).to_table() == opened.to_table(["id"])


def test_a_version_that_is_gone_or_another_one_is_refused(dataset: LanceDataset):
    payload = pickle.dumps(dataset)
    shutil.rmtree(dataset.uri)
    with pytest.raises(DatasetNotFoundError):
        pickle.loads(payload).to_table()  # noqa: S301
    made = lance_nb.write_dataset(rows(0, 4), dataset.uri)
    with pytest.raises(VersionNotFoundError):
        pickle.loads(payload).to_table()  # noqa: S301
    for number in range(2):
        made.update_config({"n": str(number)})
    with pytest.raises(NotFoundError, match="deleted and created again"):
        pickle.loads(payload).to_table()  # noqa: S301


def test_what_cannot_travel_says_what_to_do(dataset: LanceDataset):
    stage = dataset.stage().append(rows(30, 31))
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSupportedError, match=r"a stage cannot be copied or pickled.*commit"):
            way(stage)
    blobs = pa.table({"b": pa.array([b"x"], pa.large_binary())}, schema=pa.schema([
        pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    ]))  # fmt: skip
    uri = f"memory://{uuid4().hex}/b.lance"
    file = lance_nb.write_dataset(blobs, uri).take_blobs("b", indices=[0])[0]
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSupportedError, match="take_blobs there"):
            way(file)
    for one in (dataset.opened[0], dataset.opened[1], dataset.diff(1)):
        with pytest.raises(NotSupportedError, match="pickle the dataset"):
            pickle.dumps(one)


def test_a_subclass_keeps_what_it_adds(dataset: LanceDataset):
    class_of = type(dataset)
    dataset.note = {"a": [1]}  # type: ignore[attr-defined]
    for way in (copy.deepcopy, returned):
        made = way(dataset)
        assert type(made) is class_of
        assert made.note == {"a": [1]}
        assert made.note is not dataset.note  # type: ignore[attr-defined]


def _count(part: Any) -> int:
    return int(part.count_rows())


FORKING = """
import multiprocessing, sys
import lance_nb

def count(part):
    return part.count_rows()

dataset = lance_nb.dataset(sys.argv[1])
dataset.to_table()  # threads and files are open when the process forks
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(count, [dataset, *dataset.get_fragments()]))
    print(pool.map(count, [dataset.scanner(filter="id < 5")]))
"""


@pytest.mark.slow
def test_forked_workers_read_fragments(dataset: LanceDataset):
    # In a process of its own: pylance, which other tests import, warns of every fork.
    command = [sys.executable, "-c", FORKING, dataset.uri]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split("\n")[:2] == ["[18, 9, 9]", "[4]"]


@pytest.mark.slow
def test_spawned_workers_read_fragments(dataset: LanceDataset):
    gone = f"memory://{uuid4().hex}/d.lance"
    lance_nb.write_dataset(rows(0, 3), gone)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_count, [dataset, *dataset.get_fragments()]) == [18, 9, 9]
        assert pool.apply(_count, (dataset.scanner(filter="id < 5"),)) == 4
        with pytest.raises(DatasetNotFoundError, match="seen by the process that wrote it"):
            pool.apply(_count, (lance_nb.dataset(gone),))


def test_a_function_that_closes_over_a_dataset(dataset: LanceDataset):
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    fragment = dataset.get_fragments()[0]

    def count() -> int:
        return dataset.count_rows() + fragment.count_rows()

    assert pickle.loads(cloudpickle.dumps(count))() == 27  # noqa: S301


# --- credentials ----------------------------------------------------------------------------------


class VaultFileSystem(MemoryFileSystem):
    """A store that opens only with the right credentials."""

    protocol = "vault"
    store: dict[str, Any] = {}  # noqa: RUF012 - as fsspec has it
    pseudo_dirs = [""]  # noqa: RUF012
    asked: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        super().__init__(skip_instance_cache=True)
        self.asked.append({k: v for k, v in options.items() if k in ("key", "secret", "region")})
        if CANARY not in (options.get("secret"), options.get("password")):
            raise PermissionError("no credentials")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        parts = urlsplit(path)
        return (f"/{parts.hostname}{parts.path}" if parts.scheme else parts.path).rstrip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        password = urlsplit(path).password
        return {} if password is None else {"password": password}


@pytest.fixture
def vault(dataset: LanceDataset) -> Iterator[str]:
    fsspec.register_implementation("vault", VaultFileSystem, clobber=True)
    VaultFileSystem.store.clear()
    VaultFileSystem.asked.clear()
    system = VaultFileSystem(secret=CANARY)
    for file in Path(dataset.uri).rglob("*"):
        if file.is_file():
            system.pipe_file(f"/box/{file.relative_to(dataset.uri).as_posix()}", file.read_bytes())
    yield "vault://box"
    VaultFileSystem.store.clear()


OPTIONS = {"key": f"{CANARY}-id", "secret": CANARY, "region": "here", "use_listings_cache": False}


def test_credentials_stay_behind(vault: str, monkeypatch: pytest.MonkeyPatch):
    opened = lance_nb.dataset(vault, storage_options=OPTIONS)
    parts = [opened, opened.get_fragments()[0], opened.scanner(["id"])]
    payloads = [pickle.dumps(one, 0) for one in parts]
    assert all(b"TOPSECRET" not in one for one in payloads)
    assert copy.deepcopy(opened).to_table() == opened.to_table()  # a copy keeps them
    VaultFileSystem.asked.clear()
    made, fragment, scan = map(pickle.loads, payloads)
    expected = r"storage option 'key' is a credential.*FSSPEC_VAULT_KEY here.*vault://box|vault"
    for use in (made.count_rows, fragment.to_table, scan.to_table):
        with pytest.raises(InvalidInputError, match=expected):
            use()
    assert not VaultFileSystem.asked
    monkeypatch.setenv("FSSPEC_VAULT_KEY", "")
    with pytest.raises(InvalidInputError, match="FSSPEC_VAULT_SECRET"):
        made.count_rows()
    monkeypatch.setenv("FSSPEC_VAULT_SECRET", CANARY)
    assert made.to_table() == opened.to_table()
    assert fragment.count_rows() == 9
    assert scan.to_table() == opened.to_table(["id"])
    assert VaultFileSystem.asked[0] == {"secret": CANARY, "region": "here"}
    path = f"{vault}/data/{opened.get_fragments()[0].metadata.files[0].path}"
    reader = lance_nb.LanceFileReader(path, OPTIONS)
    payload = pickle.dumps(reader)
    assert CANARY.encode() not in payload
    assert pickle.loads(payload).num_rows() == 10  # noqa: S301


def test_a_password_in_the_uri_stays_behind(vault: str, monkeypatch: pytest.MonkeyPatch):
    secret = f"vault://me:{CANARY}@box"
    opened = lance_nb.dataset(secret)
    payload = pickle.dumps(opened)
    assert CANARY.encode() not in payload
    made = pickle.loads(payload)  # noqa: S301
    assert made.uri == opened.uri == "vault://***@box"
    with pytest.raises(InvalidInputError, match=r"user and password.*LANCE_NB_URI_USERINFO"):
        made.count_rows()
    monkeypatch.setenv("LANCE_NB_URI_USERINFO", f"me:{CANARY}")
    assert made.count_rows() == 18
    assert CANARY.encode() not in pickle.dumps(made)


def test_tables_below_a_password_in_the_uri_are_opened_and_shown_without_it(vault: str):
    """Opening them would fail: the URI of a store is without the password."""
    VaultFileSystem.store |= {
        key.replace("/box/", "/box/t.lance/"): file for key, file in VaultFileSystem.store.items()
    }
    database = lance_nb.database(f"vault://me:{CANARY}@box")
    assert database.dataset("t").count_rows() == 18
    place = database.place("t")
    texts = [
        f"{one!r}{one}" for one in (database, place, database.tables(), database.describe("t"))
    ]
    assert not [text for text in texts if CANARY in text]
    assert place.uri == "vault://***@box/t.lance"
    assert CANARY.encode() not in pickle.dumps(place)


def test_a_manifest_store_is_opened_again(dataset: LanceDataset, tmp_path: Path):
    options = {"manifest_store": f"sqlite:///{tmp_path}/m.db"}
    made = lance_nb.write_dataset(rows(0, 5), tmp_path / "e.lance", storage_options=options)
    again = returned(made)
    assert again.to_table() == rows(0, 5)
    assert again.opened[0].storage_options == options


@pytest.mark.parametrize(
    ("uri", "options", "kept", "variables"),
    [
        (
            "s3://b/d",
            {"aws_access_key_id": "A", "AWS_SECRET_ACCESS_KEY": "S", "region": "eu",
             "aws_endpoint": "http://h", "anon": False, "session_token": "T"},
            {"region": "eu", "aws_endpoint": "http://h", "anon": False},
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
        ),
        (
            "s3://b/d",
            {"client_kwargs": {"verify": False, "aws_access_key_id": "A"}, "session": object(),
             "endpoint_url": "http://me:pw@h"},
            {"client_kwargs": {"verify": False}},
            ["AWS_ACCESS_KEY_ID", "FSSPEC_S3_SESSION", "FSSPEC_S3_ENDPOINT_URL"],
        ),
        ("gs://b/d", {"token": "anon", "project": "p"}, {"token": "anon", "project": "p"}, []),
        ("gs://b/d", {"google_service_account": "{}"}, {}, ["GOOGLE_SERVICE_ACCOUNT"]),
        (
            "az://c/d",
            {"account_name": "n", "azure_storage_account_key": "K", "client_secret": "C"},
            {"account_name": "n"},
            ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CLIENT_SECRET"],
        ),
        (
            "s3://b/d",
            {"creds": "C", "endpoint_url": "http://h/?sig=S", "proxy_url": "http://T@h"},
            {},
            ["FSSPEC_S3_CREDS", "FSSPEC_S3_ENDPOINT_URL", "FSSPEC_S3_PROXY_URL"],
        ),
        ("/d", {"manifest_store": "sqlite:////m.db"}, {"manifest_store": "sqlite:////m.db"}, []),
        ("/d", {"manifest_store": "postgres://me:pw@h/d"}, {}, ["LANCE_NB_MANIFEST_STORE"]),
        ("sftp://h/d", {"password": "pw", "port": 22}, {"port": 22}, ["FSSPEC_SFTP_PASSWORD"]),
    ],
)  # fmt: skip
def test_which_options_travel(
    uri: str, options: dict[str, Any], kept: dict[str, Any], variables: list[str],
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    location = PublicLocation.of(uri, options)
    assert location.options == kept
    for name in variables:
        with pytest.raises(InvalidInputError, match=name):
            location.resolve()
        monkeypatch.setenv(name, "again")
    resolved = location.resolve()[1]
    assert resolved is not None
    assert set(resolved) == set(options)
    for name, value in options.items():
        if not isinstance(value, dict):
            assert resolved[name] == kept.get(name, "again")


def test_uris_without_their_user():
    assert without_url_secrets("ftp://me:pw@host/d") == "ftp://***@host/d"
    assert without_url_secrets("https://token@host/d") == "https://***@host/d"
    assert (
        without_url_secrets("abfss://container@account.dfs/d") == "abfss://container@account.dfs/d"
    )
    assert without_url_secrets("/home/me@work:1/d") == "/home/me@work:1/d"
