"""Entries of manifest stores and the paths in them."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.transactions.external.base import ManifestEntry

UUID = "2c60ef98-98ed-4799-ad2a-a32d3c5e98ee"


@pytest.mark.parametrize(
    ("file", "scheme"),
    [("2.manifest", NamingScheme.V1), ("18446744073709551613.manifest", NamingScheme.V2)],
)
def test_staged_and_final_paths(file: str, scheme: NamingScheme):
    final = ManifestEntry(2, f"a/b/_versions/{file}", 434, "tag")
    staged = ManifestEntry(2, f"{final.path}-{UUID}", 434, "tag")
    assert (final.is_staged, staged.is_staged) == (False, True)
    assert staged.finished("x") == final.finished("x") == final
    assert staged.name("x") == final.name("x") == ManifestName(2, scheme)
    assert staged.object_path == f"_versions/{file}-{UUID}"


@pytest.mark.parametrize(
    "path",
    ["", "2.manifest", "a/2.manifest", "a/_versions/3.manifest", "a/_versions/2.manifest-x",
     "a/_versions/2.manifest#1", "a/_versions/..", f"a/_versions/{UUID}"],
)  # fmt: skip
def test_other_paths_are_damage(path: str):
    with pytest.raises(CorruptFileError, match="version 2"):
        ManifestEntry(2, path).name("the store")
