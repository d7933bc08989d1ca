"""Paths in manifests and refs that try to leave the dataset."""

from __future__ import annotations

import json
import sys
from urllib.parse import quote

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, ObjectNotFoundError
from tests.faults.lies.conftest import LATEST
from tests.faults.lies.reading import bounded, edit_fragment, edit_manifest, refused
from tests.golden.copies import edited_fragment

ESCAPES = [
    "", ".", "..", "/", "//", "./x", "../x", "../../x", "../../../../../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd", "///x", "x/", "x//y", "x/./y", "x/../y", "x/..", "x/.", "x/../../y",
    "a/b/../../../c",
    "../data/x.lance", "../_versions/x", "data/../../x", "..\\x", "..\\..\\x", "\\x",
    "\\\\host\\share",
    "x\\y", "x\\..\\y", "C:x", "C:\\x", "c:/x", "z:", "\0", "x\0", "x\0.lance", "../\0x",
    "%2e%2e/x",
    "%2E%2E/x", "%2e%2E/x", ".%2e/x", "%2e./x", "%2E/x", "..%2fx", "..%2Fx", "%2fetc%2fpasswd",
    "x%2f..%2fy",
    "..%5cx", "%5c%5chost", "%2e%2e%2fx", "%2e%2e%5cx", "file:///etc/passwd", "file://localhost/x",
    "http://127.0.0.1/x", "https://x/y", "s3://bucket/x", "memory://x/y", "gs://x", "x/\0/y",
    "/../x",
]  # fmt: skip
INSIDE = [
    "...",
    "..x",
    "x..",
    "a b",
    "~/x",
    "~root",
    "é.lance",
    "%41",
    "$HOME",
    "-rf",
    "*",
    "xy:z",
    ".x",
]


def opened_by(read, audited):
    """Run ``read`` and return every path that Python opened meanwhile."""
    audited.clear()
    read()
    return [str(path) for path in audited]


@pytest.fixture(scope="module")
def audited():
    """A list that grows by every path that is opened; audit hooks cannot be removed again."""
    paths: list[object] = []
    switch = [True]

    def hook(event, arguments):
        if switch[0] and event in ("open", "os.open", "os.listdir", "os.scandir"):
            if isinstance(arguments[0], int):
                return  # what is listed by its descriptor was opened by its path
            paths.append(arguments[0])

    sys.addaudithook(hook)
    yield paths
    switch[0] = False


def test_there_are_sixty_ways_out():
    assert len(ESCAPES) >= 60
    assert len(set(ESCAPES)) == len(ESCAPES)


@pytest.mark.parametrize("path", ESCAPES, ids=repr)
def test_a_data_file_outside_of_the_dataset_is_refused(root, audited, path):
    decoy = next((root / "data").iterdir())
    for place in (root / "x", root.parent / "x", root / "_versions" / "x", root / "c"):
        place.write_bytes(decoy.read_bytes())
    edit_fragment(root, LATEST, lambda one: setattr(one.files[0], "path", path))
    read = lambda: refused(lambda: lance_nb.dataset(root).to_table(), "leaves the dataset")
    opened = opened_by(read, audited)
    assert all(
        one.startswith(str(root)) for one in opened if "hostile" not in one and ".py" not in one
    )


@pytest.mark.parametrize("path", INSIDE, ids=repr)
def test_an_odd_name_inside_of_the_dataset_is_a_name(root, path):
    edit_fragment(root, LATEST, lambda one: setattr(one.files[0], "path", path))
    error = refused(lambda: lance_nb.dataset(root).to_table(), f"data/{path}", "fragment")
    assert isinstance(error, ObjectNotFoundError)


def test_a_long_name_is_refused_in_few_words(root):
    edit_fragment(root, LATEST, lambda one: setattr(one.files[0], "path", "x" * 100_000))
    refused(lambda: lance_nb.dataset(root).to_table())


# --- base paths ---------------------------------------------------------------------------------


def use_base(root, path, is_root=True):
    """Let the first fragment's file lie under another base."""

    def change(manifest):
        base = manifest.base_paths.add()
        base.id, base.path, base.is_dataset_root = 5, path, is_root
        manifest.fragments[0] = edited_fragment(
            manifest.fragments[0], lambda one: setattr(one.files[0], "base_id", 5)
        )

    edit_manifest(root, LATEST, change)


@pytest.mark.parametrize(
    "target",
    ["{outside}", "file://{outside}", "{root}/../outside", "{root}-evil",
     "{root}/tree/../../outside",
     "/", "/etc", "s3://evil-bucket/x", "gs://evil/x", "http://169.254.169.254/latest/meta-data",
     "http://localhost:1/x", "memory://somewhere", "relative/folder", "{root}/link", "S3://evil/x",
     "file:///etc", "~"],
)  # fmt: skip
def test_a_base_path_outside_of_the_dataset_is_refused_and_named(root, tmp_path, target):
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    path = target.format(root=root, outside=tmp_path / "outside")
    use_base(root, path)
    dataset = lance_nb.dataset(root)
    assert dataset.count_rows() == 110
    error = refused(dataset.to_table, repr(path), "allow_bases")
    assert isinstance(error, InvalidInputError)


@pytest.mark.parametrize("path", ["", "\0", "\0/etc", "file://host/x"], ids=repr)
def test_a_base_path_that_is_no_path_is_refused(root, path):
    use_base(root, path)
    refused(lambda: lance_nb.dataset(root).to_table())


def test_a_base_path_that_the_caller_allows_is_read(root, tmp_path):
    expected = lance_nb.dataset(root).to_table()
    moved = tmp_path / "outside"
    (root / "data").rename(moved)
    (root / "data").mkdir()
    for path in moved.iterdir():
        (root / "data" / path.name).symlink_to(path)
    use_base(root, str(moved), is_root=False)
    dataset = lance_nb.dataset(root, allow_bases=[str(tmp_path)])
    assert dataset.to_table().equals(expected)


def test_allowing_one_base_path_does_not_allow_its_neighbours(root, tmp_path):
    use_base(root, str(tmp_path / "outside-2"))
    dataset = lance_nb.dataset(root, allow_bases=[str(tmp_path / "outside")])
    refused(dataset.to_table, "outside-2")


def test_a_base_path_that_is_the_dataset_itself_is_read(root):
    expected = lance_nb.dataset(root).to_table()
    use_base(root, str(root))
    assert lance_nb.dataset(root).to_table().equals(expected)


# --- refs ---------------------------------------------------------------------------------------


def write_tag(root, name, data):
    path = root / "_refs" / "tags" / f"{name}.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())


@pytest.mark.parametrize(
    "branch",
    ["../../x", "..", ".", "/", "/etc", "a/../../b", "a//b", "x\\y", "\0", "tree/../..", "a.lock",
     "~",
     "side/..", " side", "%2e%2e", "x" * 100_000],
    ids=lambda name: name[:20],
)  # fmt: skip
def test_a_tag_on_a_branch_outside_of_the_dataset_is_refused(root, audited, branch):
    write_tag(root, "evil", {"branch": branch, "version": 1, "manifestSize": 1})
    read = lambda: refused(lambda: lance_nb.dataset(root, "evil"), "branch")
    opened = opened_by(read, audited)
    assert all(one.startswith(str(root)) for one in opened if ".py" not in one)
    with bounded():
        assert lance_nb.dataset(root, "first").version == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"{}", b'{"version": -1}',
     b"x" * 2_000_000,
     b'{"version": 18446744073709551616}', b'{"version": "1"}', b'{"version": 1.5}',
     b'{"version": true}',
     b'{"version": 1, "branch": 7}', b"[" * 200_000, b'{"version": 1, "createdAt": "yesterday"}',
     b'{"version": 1, "createdAt": "9999-12-31T23:59:59+00:00:99"}', b'{"version": NaN}',
     b'{"version": 1, "metadata": [1]}', b'{"version": 1, "metadata": {"a": 1}}',
     b'{"version": ' + b"9" * 5000 + b"}"],
    ids=lambda data: f"{len(data)}-{bytes(data[:24])!r}",
)  # fmt: skip
def test_a_damaged_tag_file_is_refused_and_named_and_hides_nothing(root, data):
    write_tag(root, "evil", data)
    refused(lambda: lance_nb.dataset(root, "evil"), "evil.json")
    refused(lance_nb.dataset(root).tags.list, "evil.json")
    with bounded():
        dataset = lance_nb.dataset(root)
        assert dataset.to_table().num_rows == 110
        assert "evil" in dataset.tags.names()
        assert lance_nb.dataset(root, "first").version == 1


def test_a_tag_on_a_version_that_is_gone_is_refused(root):
    write_tag(root, "evil", {"branch": None, "version": 99, "manifestSize": 1})
    refused(lambda: lance_nb.dataset(root, "evil"), "99", "1-14")


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "x" * 200, "\u202e", "<b>", "main", " "])
def test_odd_names_of_ref_files_open_nothing_else(root, name):
    write_tag(root, quote(name, safe=""), {"branch": None, "version": 1, "manifestSize": 1})
    with bounded():
        dataset = lance_nb.dataset(root)
        assert set(dataset.tags.names()) >= {"first", "on-side"}
        assert dataset.tags.list()["first"]["version"] == 1


def test_a_branch_whose_folder_is_gone_is_refused(root):
    (root / "tree" / "side" / "_versions").rename(root / "gone")
    refused(lambda: lance_nb.dataset(root, ("side", None)), "side")


def test_a_branch_folder_without_a_ref_file_is_no_branch(root):
    (root / "_refs" / "branches" / "side.json").unlink()
    refused(lambda: lance_nb.dataset(root, ("side", None)), "branch 'side' does not exist")
