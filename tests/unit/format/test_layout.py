"""File names: built, parsed, and refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format import layout
from lance_nb.format.layout import ManifestName, NamingScheme, parse_manifest_name

V1, V2 = NamingScheme.V1, NamingScheme.V2


@given(st.integers(0, 2**63 - 1), st.sampled_from(NamingScheme))
def test_a_manifest_name_reads_back(version: int, scheme: NamingScheme):
    folder, name = layout.manifest_path(version, scheme).split("/")
    assert folder == "_versions"
    assert parse_manifest_name(name) == ManifestName(version, scheme)
    assert ManifestName(version, scheme).path == f"_versions/{name}"


@given(st.integers(2**63, 2**64 - 1))
def test_a_detached_name_reads_back(version: int):
    name = layout.manifest_path(version).split("/")[1]
    assert parse_manifest_name(name) == ManifestName(version, V2)
    assert ManifestName(version, V2).detached


def test_known_names():
    assert layout.manifest_path(2) == "_versions/18446744073709551613.manifest"
    assert layout.manifest_path(2, V1) == "_versions/2.manifest"
    detached = 2**63 + 2
    assert layout.manifest_path(detached) == "_versions/d9223372036854775810.manifest"
    assert parse_manifest_name("d9223372036854775810.manifest") == ManifestName(detached, V2)
    for version in (-1, 2**64):
        with pytest.raises(InvalidInputError):
            layout.manifest_path(version)


@pytest.mark.parametrize(
    "name",
    [
        "latest_version_hint.json",
        "18446744073709551613.manifest#1",
        "18446744073709551613.manifest-0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11",
        "2.manifest-abc",
        ".tmp-0123",
        ".manifest",
        "x.manifest",
        "-1.manifest",
        "01.manifest",
        "1 .manifest",
        "٣.manifest",
        "99999999999999999999.manifest",
        "00000000000000000000.manifest",
        "184467440737095516130.manifest",
        "d1.manifest",
        "d.manifest",
        "d09223372036854775810.manifest",
        "9223372036854775808.manifest",
    ],
)
def test_other_files_of_the_folder_are_no_versions(name: str):
    assert parse_manifest_name(name) is None


def test_the_latest_is_the_first_v2_name_and_the_largest_v1_name():
    v2 = [layout.manifest_path(n).split("/")[1] for n in (9, 10, 2, 100)]
    noise = ["latest_version_hint.json", "d9223372036854775810.manifest", ".tmp-1"]
    assert layout.latest_version(v2 + noise) == ManifestName(100, V2)
    assert layout.latest_version(v2) == parse_manifest_name(min(v2))
    assert layout.latest_version(noise[:1] + v2) == ManifestName(100, V2)
    v1 = [f"{n}.manifest" for n in (9, 10, 2)]
    assert layout.latest_version(v1 + noise) == ManifestName(10, V1)
    assert [one.version for one in layout.list_versions(v1)] == [2, 9, 10]
    assert layout.latest_version(noise) is None


def test_names_that_only_look_newest_do_not_hide_the_latest():
    names = [layout.manifest_path(n).split("/")[1] for n in (1, 2)]
    for odd in ("00000000000000000000.manifest", "0000000000000000000x.manifest"):
        assert layout.latest_version([odd, *names]) == ManifestName(2, V2)
    assert layout.latest_version(["d9223372036854775810.manifest", *names]) == ManifestName(2, V2)
    assert layout.latest_version(["d9223372036854775810.manifest", "3.manifest"]).version == 3


@pytest.mark.parametrize("beside", [[], ["latest_version_hint.json"]])
def test_both_naming_schemes_in_one_folder_are_damage(beside: list[str]):
    names = ["4.manifest", "18446744073709551613.manifest", *beside]
    with pytest.raises(CorruptFileError, match=r"one naming.*migrate_manifest_paths_v2 again"):
        layout.latest_version(names, "x/_versions")


def test_other_paths():
    assert layout.transaction_path(layout.transaction_name(1, "u")) == "_transactions/1-u.txn"
    assert layout.deletion_path(4, 17, 2**64 - 1, "bin") == (
        "_deletions/4-17-18446744073709551615.bin"
    )
    assert layout.data_path("a.lance") == "data/a.lance"
    assert layout.index_folder("u") == "_indices/u"
    assert layout.branch_root("fix/1") == "tree/fix/1"


@pytest.mark.parametrize(
    ("name", "file"), [("fix/issue-1", "fix%2Fissue-1.json"), ("é", "%C3%A9.json"), ("a", "a.json")]
)
def test_ref_names_are_percent_encoded(name: str, file: str):
    assert layout.branch_path(name) == f"_refs/branches/{file}"
    assert layout.tag_path(name) == f"_refs/tags/{file}"
    assert layout.parse_ref_file_name(file) == name
    assert layout.parse_ref_file_name("x.tmp") is None
    assert layout.parse_ref_file_name(".json") is None


@pytest.mark.parametrize("path", ["a.lance", "part-1/a.lance", "a..b", "100%.lance", "naïve"])
def test_paths_inside_the_dataset_are_accepted(path: str):
    assert layout.check_relative_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/..",
        "..",
        ".",
        "a//b",
        "a\0b",
        "..\\x",
        "C:\\x",
        "C:x",
        "%2e%2e/x",
        ".%2E/x",
        "a/%2e/x",
        "..%2Fx",
        "a%5c..",
        "s3://evil/x",
        "file:///etc/passwd",
        "a/",
    ],
)
def test_paths_that_leave_the_dataset_are_refused(path: str):
    with pytest.raises(CorruptFileError, match="leaves the dataset"):
        layout.check_relative_path(path, "1.manifest")


MIXED_LENGTHS = [
    "18446744073709551613.manifest",
    "18446744073709551615.manifest",
    "9223372036854775808.manifest",
    "d9223372036854775810.manifest",
    "d18446744073709551613.manifest",
    "99999999999999999999.manifest",
    "1844674407370955161x.manifest",
    "latest_version_hint.json",
]


@pytest.mark.parametrize("names", [MIXED_LENGTHS, ["7.manifest", "10.manifest", "x.manifest"], []])
def test_listing_numbers_says_what_each_name_says(names: list[str]):
    each = [one for name in names if (one := parse_manifest_name(name)) and not one.detached]
    numbers, scheme = layout.list_numbers(names)
    assert numbers == sorted(one.version for one in each)
    assert {scheme} >= {one.scheme for one in each}


def test_names_of_the_new_scheme_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch):
    names = [layout.manifest_path(version).split("/")[1] for version in range(1, 2000)]
    asked: list[str] = []
    monkeypatch.setattr(layout, "parse_manifest_name", asked.append)
    monkeypatch.setattr(layout, "ManifestName", asked.append)
    assert layout.list_numbers([*names, "latest_version_hint.json"])[0] == list(range(1, 2000))
    assert not asked
