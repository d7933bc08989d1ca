"""External blobs below no base path: those that this process wrote are read, no others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.file import blob_writer, external_blobs
from lance_nb.session import base_paths
from lance_nb.session.base_paths import remember_blobs, written_blobs
from lance_nb.storage.registry import open_store
from lance_nb.table import locations

ALLOWED: dict[str, Any] = {"allow_external_blob_outside_bases": True}
PAYLOAD = b"0123456789"


@pytest.fixture(autouse=True)
def empty_registry(as_another_process: Callable[[], None]) -> None:
    """Begin as a process that has written nothing."""
    as_another_process()


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """A folder of files: one to refer to, and its neighbours."""
    folder = tmp_path / "media"
    folder.mkdir()
    for name in ("a.bin", "b.bin", "secret.bin"):
        (folder / name).write_bytes(PAYLOAD)
    return folder


def rows(*blobs: Any) -> pa.Table:
    fields = [pa.field("id", pa.int64()), lance_nb.blob_field("b")]
    ids = pa.array(range(len(blobs)), pa.int64())
    return pa.table([ids, lance_nb.blob_array(list(blobs))], schema=pa.schema(fields))


def payloads(dataset: LanceDataset) -> list[bytes | None]:
    whole = dataset.to_table(["b"], blob_handling="all_binary")["b"].to_pylist()
    files = dataset.take_blobs("b", indices=list(range(len(whole))))
    assert [None if file is None else file.readall() for file in files] == whole
    return whole  # type: ignore[no-any-return]


def refused(dataset: LanceDataset) -> InvalidInputError:
    with pytest.raises(InvalidInputError, match="under another base path") as caught:
        payloads(dataset)
    return caught.value


def by_write(uri: str, table: pa.Table) -> LanceDataset:
    return lance_nb.write_dataset(table, uri, **ALLOWED)


def by_append(uri: str, table: pa.Table) -> LanceDataset:
    lance_nb.write_dataset(table.slice(0, 0), uri)
    return lance_nb.write_dataset(table, uri, mode="append", **ALLOWED)


def by_insert(uri: str, table: pa.Table) -> LanceDataset:
    dataset = lance_nb.write_dataset(table.slice(0, 0), uri)
    dataset.insert(table, **ALLOWED)
    return dataset


def by_insert_into_a_branch(uri: str, table: pa.Table) -> LanceDataset:
    lance_nb.write_dataset(table.slice(0, 0), uri).create_branch("dev").insert(table, **ALLOWED)
    return lance_nb.dataset(uri, ("dev", None))


def by_overwrite(uri: str, table: pa.Table) -> LanceDataset:
    lance_nb.write_dataset(rows(b"before"), uri)
    return lance_nb.write_dataset(table, uri, mode="overwrite", **ALLOWED)


def by_stage(uri: str, table: pa.Table) -> LanceDataset:
    stage = lance_nb.write_dataset(table.slice(0, 0), uri).stage()
    stage.append(table, **ALLOWED)
    stage.commit()
    return lance_nb.dataset(uri)


def by_staged_overwrite(uri: str, table: pa.Table) -> LanceDataset:
    stage = lance_nb.write_dataset(rows(b"before"), uri).stage()
    stage.overwrite(table, **ALLOWED)
    stage.commit()
    return lance_nb.dataset(uri)


def by_fragments(uri: str, table: pa.Table) -> LanceDataset:
    dataset = lance_nb.write_dataset(table.slice(0, 0), uri)
    fragments = lance_nb.write_fragments(table, dataset, **ALLOWED)
    append = lance_nb.LanceOperation.Append(fragments)
    return lance_nb.LanceDataset.commit(dataset, append, dataset.version)


def by_one_fragment(uri: str, table: pa.Table) -> LanceDataset:
    dataset = lance_nb.write_dataset(table.slice(0, 0), uri)
    fragment = lance_nb.LanceFragment.create(dataset, table, **ALLOWED)
    append = lance_nb.LanceOperation.Append([fragment])
    return lance_nb.LanceDataset.commit(dataset, append, dataset.version)


WRITERS = [
    by_write, by_append, by_insert, by_insert_into_a_branch, by_overwrite, by_stage,
    by_staged_overwrite, by_fragments, by_one_fragment,
]  # fmt: skip


@pytest.mark.parametrize("write", WRITERS)
def test_references_are_read_by_the_process_that_wrote_them(
    write: Callable[[str, pa.Table], LanceDataset],
    tmp_path: Path,
    media: Path,
    as_another_process: Callable[[], None],
) -> None:
    uri = str(tmp_path / "d.lance")
    file = (media / "a.bin").as_uri()
    part = lance_nb.Blob.from_uri(file, position=2, size=3)

    dataset = write(uri, rows(file, b"inline", None, part))

    expected = [PAYLOAD, b"inline", None, b"234"]
    newest = (dataset.branch, None)
    opened = lance_nb.dataset(uri, newest)
    assert payloads(dataset) == expected
    assert payloads(opened) == expected
    opened.optimize.compact_files()
    assert payloads(opened) == expected
    as_another_process()
    refused(lance_nb.dataset(uri, newest))


def test_another_process_must_be_allowed_to_read_them(tmp_path: Path, media: Path) -> None:
    uri = by_write(str(tmp_path / "d.lance"), rows((media / "a.bin").as_uri())).uri
    code = (
        "import sys, lance_nb\n"
        "dataset = lance_nb.dataset(sys.argv[1], allow_bases=sys.argv[2:])\n"
        "print(dataset.take_blobs('b', indices=[0])[0].readall())"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, uri, *allowed], capture_output=True, text=True, check=False
        )
        for allowed in ([], [str(media)])
    ]
    assert "InvalidInputError" in outputs[0].stderr
    assert f"allow_bases=['{media}']" in outputs[0].stderr
    assert outputs[0].stdout == ""
    assert outputs[1].stdout.strip() == repr(PAYLOAD)


@pytest.mark.parametrize(
    "name", ["secret.bin", "a.bin/../secret.bin", "./a.bin", "%61.bin", "a.bin#", "a.bin "]
)
def test_another_uri_in_the_same_folder_stays_refused(
    name: str, tmp_path: Path, media: Path, as_another_process: Callable[[], None]
) -> None:
    uri = str(tmp_path / "d.lance")
    by_write(uri, rows(f"{media.as_uri()}/{name}"))  # somebody else did
    as_another_process()

    dataset = lance_nb.write_dataset(
        rows((media / "a.bin").as_uri()), uri, mode="append", **ALLOWED
    )

    refused(dataset)
    files = dataset.take_blobs("b", indices=[1])
    assert [file and file.readall() for file in files] == [PAYLOAD]
    with pytest.raises(InvalidInputError, match="under another base path"):
        dataset.take_blobs("b", indices=[0])


def test_another_dataset_with_the_same_uri_stays_refused(
    tmp_path: Path, media: Path, as_another_process: Callable[[], None]
) -> None:
    table = rows((media / "a.bin").as_uri())
    by_write(str(tmp_path / "theirs.lance"), table)
    as_another_process()
    by_write(str(tmp_path / "ours.lance"), table)

    refused(lance_nb.dataset(tmp_path / "theirs.lance"))
    (tmp_path / "link.lance").symlink_to(tmp_path / "ours.lance")
    assert payloads(lance_nb.dataset(tmp_path / "link.lance")) == [PAYLOAD]


@pytest.mark.parametrize("clone", ["shallow_clone", "deep_clone"])
def test_clones_of_this_process_are_read_too(
    clone: str, tmp_path: Path, media: Path, as_another_process: Callable[[], None]
) -> None:
    dataset = by_write(str(tmp_path / "d.lance"), rows((media / "a.bin").as_uri()))
    copy = getattr(dataset, clone)(str(tmp_path / "copy.lance"))
    assert payloads(copy) == payloads(lance_nb.dataset(copy.uri)) == [PAYLOAD]
    as_another_process()
    refused(lance_nb.dataset(copy.uri, allow_bases=[dataset.uri]))


@pytest.mark.parametrize("name", ["a b.bin", "100%25.bin", "größe.bin", "q?x#y.bin"])
def test_names_that_a_uri_encodes_are_read(
    name: str, tmp_path: Path, media: Path, as_another_process: Callable[[], None]
) -> None:
    (media / name).write_bytes(PAYLOAD)
    table = rows((media / name).as_uri())
    assert payloads(by_write(str(tmp_path / "d.lance"), table)) == [PAYLOAD]
    as_another_process()
    allowed = lance_nb.dataset(tmp_path / "d.lance", allow_bases=[str(media)])
    assert payloads(allowed) == [PAYLOAD]


def test_an_encoded_uri_leads_out_of_no_place_that_is_allowed(
    tmp_path: Path, media: Path, as_another_process: Callable[[], None]
) -> None:
    (tmp_path / "secret.bin").write_bytes(b"secret")
    by_write(str(tmp_path / "d.lance"), rows(f"{media.as_uri()}/..%2fsecret.bin"))
    as_another_process()
    refused(lance_nb.dataset(tmp_path / "d.lance", allow_bases=[str(media)]))


def test_objects_of_other_stores_are_read(
    media: Path, as_another_process: Callable[[], None]
) -> None:
    place = f"memory://{uuid4().hex}"
    open_store(place).write("x/a.bin", PAYLOAD)
    dataset = by_write(f"{place}/d.lance", rows(f"{place}/x/a.bin"))
    assert payloads(dataset) == [PAYLOAD]
    as_another_process()
    refused(lance_nb.dataset(dataset.uri))


def test_a_link_is_followed_to_where_it_led_when_it_was_written(
    tmp_path: Path, media: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.bin"
    link.symlink_to(media / "a.bin")
    dataset = by_write(str(tmp_path / "d.lance"), rows(link.as_uri()))
    assert payloads(dataset) == [PAYLOAD]

    link.unlink()
    link.symlink_to(media / "secret.bin")
    refused(dataset)


def test_a_write_that_fails_allows_nothing(tmp_path: Path, media: Path) -> None:
    uri = str(tmp_path / "d.lance")
    table = rows((media / "a.bin").as_uri())

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise RuntimeError("the source broke")

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises(RuntimeError, match="the source broke"):
        lance_nb.write_dataset(reader, uri, **ALLOWED)
    with pytest.raises(InvalidInputError, match="outside of the dataset"):
        lance_nb.write_dataset(table, uri)
    assert len(written_blobs(uri)) == 0


def test_the_memory_of_all_datasets_is_bounded_and_the_error_says_so(
    tmp_path: Path, media: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (external_blobs, base_paths, blob_writer, locations):
        monkeypatch.setattr(module, "URIS_MAX", 3)
    files = [media / f"{number}.bin" for number in range(6)]
    for file in files:
        file.write_bytes(PAYLOAD)
    uris = [file.as_uri() for file in files]
    first, second = (str(tmp_path / name) for name in ("first.lance", "second.lance"))

    assert payloads(by_write(first, rows(*uris[:2], *uris[:2]))) == [PAYLOAD] * 4
    error = refused(by_write(second, rows(*uris)))
    assert "more external blobs than the 3 whose URIs it remembers" in "".join(error.__notes__)

    assert payloads(lance_nb.dataset(first)) == [PAYLOAD] * 4
    held = [written_blobs(second).target(uri) is not None for uri in uris]
    assert held == [True, False, False, False, False, False]
    lance_nb.write_dataset(rows(uris[0]), second, mode="append", **ALLOWED)  # is held already
    assert len(written_blobs(first)) + len(written_blobs(second)) == 3


def test_one_write_of_more_blobs_than_are_remembered_says_so(
    tmp_path: Path, media: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (external_blobs, base_paths, blob_writer, locations):
        monkeypatch.setattr(module, "URIS_MAX", 2)
    uris = [(media / name).as_uri() for name in ("a.bin", "b.bin", "secret.bin")]
    error = refused(by_write(str(tmp_path / "x.lance"), rows(*uris)))
    assert "more external blobs than the 2 whose URIs it remembers" in "".join(error.__notes__)


def test_a_dataset_that_alone_refers_to_blobs_may_use_all_of_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base_paths, "URIS_MAX", 3)
    for name in ("x", "y", "z", "x"):
        remember_blobs("/d", [f"s3://bucket/{name}"])
    assert len(written_blobs("/d")) == 3
    assert not written_blobs("/d").is_cut
    remember_blobs("/d", ["s3://bucket/one-more"])
    assert len(written_blobs("/d")) == 3
    assert written_blobs("/d").is_cut


def test_what_no_store_opens_is_not_remembered() -> None:
    remember_blobs("/d", ["file://host/x", "", "s3://bucket/x"])
    assert written_blobs("/d").target("s3://bucket/x") == "s3://bucket/x"
    assert len(written_blobs("/d")) == 1
    with pytest.raises(LanceError):
        written_blobs("/d").target("file://host/x")
