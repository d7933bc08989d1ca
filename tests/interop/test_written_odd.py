"""Columns of unusual types: written by us, read equal by pylance and by us, or refused by name.

What is refused here pylance refuses too, or cannot read back from its own files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from tests.support.requirements import require_pylance
from tests.support.written_files import differences, write_file

pytestmark = pytest.mark.interop

NONE = pa.struct([])
PAIR = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]), 2)
ALL, SINCE_2_1, ONLY_2_2 = ("2.0", "2.1", "2.2"), ("2.1", "2.2"), ("2.2",)
POINT = {"x": 1, "y": "a"}
LIST = pa.list_

# name -> (rows, the versions that hold them)
CASES: dict[str, tuple[pa.Array, tuple[str, ...]]] = {
    "struct without fields": (pa.array([{}, {}, {}], NONE), ALL),
    "null struct without fields": (pa.array([{}, None], NONE), ()),
    "list of structs without fields": (pa.array([[{}]], LIST(NONE)), ("2.0",)),
    "vectors of structs": (pa.array([[POINT, {"x": None, "y": "b"}]] * 5, PAIR), ONLY_2_2),
    "vectors of null structs": (pa.array([[POINT, None], None, [POINT] * 2], PAIR), ONLY_2_2),
    "vectors of structs in a struct": (
        pa.array([{"f": [POINT] * 2}], pa.struct([("f", PAIR)])),
        (),
    ),
    "vectors of vectors": (
        pa.array([[[1, 2], [3, 4]], None, [[5, 6], [7, None]]], LIST(LIST(pa.float32(), 2), 2)),
        ALL,
    ),
    "lists of vectors of vectors": (
        pa.array([[[[1, 2], [3, 4]]], None, []], LIST(LIST(LIST(pa.float32(), 2), 2))),
        ALL,
    ),
    "vectors of bits with nulls": (pa.array([[True, None], None], LIST(pa.bool_(), 2)), ALL),
    "vectors of bytes": (pa.array([[k] * 1000 for k in range(20)], LIST(pa.uint8(), 1000)), ALL),
    "vectors of decimals": (pa.array([[1, 2]], LIST(pa.decimal128(10, 2), 2)), ALL),
    "vectors of fixed bytes": (pa.array([[b"ab", b"cd"]], LIST(pa.binary(2), 2)), ALL),
    "vectors of text": (pa.array([["ab", "cd"]], LIST(pa.string(), 2)), ()),
    "dictionary of numbers": (pa.array([5, None, 5, 7]).dictionary_encode(), ALL),
    "dictionary of floats": (pa.array([1.5, None, 1.5]).dictionary_encode(), ALL),
    "dictionary of bytes": (pa.array([b"a", None]).dictionary_encode(), ALL),
    "dictionary with a null item": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None])),
        ALL,
    ),
    "dictionary without items": (
        pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string())),
        ALL,
    ),
    "large list of structs": (
        pa.array([[{"a": 1}], None, []], pa.large_list(pa.struct([("a", pa.int8())]))),
        ALL,
    ),
    "map to null lists": (
        pa.array([[("a", None)], None, []], pa.map_(pa.string(), LIST(pa.int8()))),
        ONLY_2_2,
    ),
    "map of maps": (
        pa.array(
            [[("a", [("b", 1)])], None], pa.map_(pa.string(), pa.map_(pa.string(), pa.int8()))
        ),
        ONLY_2_2,
    ),
    "list of the null type": (pa.array([[None], [], None], LIST(pa.null())), ALL),
    "struct of the null type": (
        pa.array([{"a": None}, None], pa.struct([("a", pa.null())])),
        SINCE_2_1,
    ),
    "lists that are empty inside": (pa.array([[[]], [], None, [None]], LIST(LIST(pa.int8()))), ALL),
    "deep": (pa.array([[{"a": [{"b": [{"c": [1, None]}]}]}], None, []]), ALL),
    "durations": (pa.array([1, None], pa.duration("us")), ALL),
    "no bytes": (pa.array([b"", None], pa.binary(0)), ()),
    "list views": (pa.array([[1]], pa.list_view(pa.int8())), ()),
    "intervals": (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), ()),
}


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("name", CASES)
def test_unusual_columns(name: str, version: str, tmp_path: Path) -> None:
    array, versions = CASES[name]
    table = pa.table({"c": array})
    if version not in versions:
        with pytest.raises(NotSupportedError):
            write_file(tmp_path, table, version, 1 << 20, 100)
        assert list(tmp_path.iterdir()) == []
        return
    path = write_file(tmp_path, table, version, 1 << 20, 100)
    assert not differences(path, table, np.random.default_rng(1))


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_are_stored_plain(kind: pa.DataType, version: str, tmp_path: Path) -> None:
    plain = pa.array(["a", None, "b" * 300]).cast(kind)
    path = write_file(tmp_path, pa.table({"c": plain}), version, 1 << 20, 100)
    stored = pa.string() if pa.types.is_string_view(kind) else pa.binary()
    expected = pa.table({"c": plain.cast(stored)})
    assert not differences(path, expected, np.random.default_rng(1))


@pytest.mark.parametrize("version", ALL)
def test_extension_types_are_stored_by_name(version: str, tmp_path: Path) -> None:
    lance = require_pylance()
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16)))
    texts = ['{"b":[1,2.5,null],"a":"x"}', None]
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))
    table = pa.table({"u": uuids, "j": json})
    path = write_file(tmp_path, table, version, 1 << 20, 100)
    ours = lance_nb.LanceFileReader(path).read_all().to_table()
    assert ours.column("u").type == pa.uuid()
    lance.write_dataset(table, str(tmp_path / "theirs"), data_storage_version=version)
    (file,) = (tmp_path / "theirs" / "data").iterdir()
    reader = lance.file.LanceFileReader
    theirs = reader(str(file)).read_all().to_table()
    assert reader(path).read_all().to_table().equals(theirs)
    # JSON as it is stored: the readers of single files do not know that it is JSON.
    assert ours.column("j").to_pylist() == theirs.column("j").to_pylist()
    assert theirs.column("j").type == pa.large_binary()


@pytest.mark.parametrize("version", ALL)
def test_structs_without_fields_inside_others_are_read(version: str, tmp_path: Path) -> None:
    require_pylance()
    from lance.file import LanceFileWriter

    kind = pa.struct([("a", NONE), ("b", pa.int8())])
    table = pa.table({"c": pa.array([{"a": {}, "b": 1}, {"a": {}, "b": None}], kind)})
    path = str(tmp_path / "x.lance")
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    assert lance_nb.LanceFileReader(path).read_all().to_table().equals(table)
