"""The wire messages of Lance, loaded into a descriptor pool of our own.

``from lance_nb._pb import table`` gives a module with one class per message (``table.Manifest``),
made when it is first used; enum values are attributes of their module or message class. The pool is
private because upstream's file names (``table.proto``, ``file.proto``) are generic: another package
in the same kernel may already have registered them in the shared pool.

Generated files here (``lance.binpb``, ``*.pyi`` but not ``__init__.pyi``) come from
``python protos/compile.py``; never edit them by hand.

Source: the messages of lance.table, lance.file, lance.encodings and lance.index as pylance 14.0.2
reads and writes them; ``protos/`` holds them in our own words.
"""

import sys as _sys
from collections.abc import Iterator as _Iterator
from types import ModuleType as _ModuleType
from typing import Any as _Any

from google.protobuf import descriptor_pool as _descriptor_pool
from google.protobuf import message_factory as _message_factory
from google.protobuf.internal import enum_type_wrapper as _enums

from lance_nb.errors import InternalError as _InternalError

__all__ = [
    "encodings",
    "encodings21",
    "file",
    "file2",
    "index",
    "rowids",
    "table",
    "transaction",
]

_FILE_TAG = 0x0A  # field 1 of a FileDescriptorSet, length-delimited


class _Messages(_ModuleType):
    """The messages and enums of one .proto file, made when they are first used."""

    def __init__(self, file: _Any) -> None:
        name = file.name.removesuffix(".proto")
        super().__init__(f"{__name__}.{name}", f"Messages of protos/{file.name}.")
        self._messages = dict(file.message_types_by_name)
        self._enums = dict(file.enum_types_by_name)
        for enum in self._enums.values():
            vars(self).update((value.name, value.number) for value in enum.values)

    def __getattr__(self, name: str) -> _Any:
        made: _Any
        if name in vars(self).get("_messages", ()):
            made = _message_factory.GetMessageClass(self._messages[name])
        elif name in vars(self).get("_enums", ()):
            made = _enums.EnumTypeWrapper(self._enums[name])
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._messages, *self._enums})


def _load() -> dict[str, _Messages]:
    # As importlib.resources does, whose loading takes longer than all that is done here.
    loader = globals()["__spec__"].loader
    raw: bytes = loader.get_data(f"{__path__[0]}/lance.binpb")
    pool = _descriptor_pool.DescriptorPool()
    modules = {}
    for descriptor in _split(raw):
        made = _Messages(pool.AddSerializedFile(descriptor))
        _sys.modules[made.__name__] = made
        modules[made.__name__.rpartition(".")[2]] = made
    return modules


def _split(raw: bytes) -> _Iterator[bytes]:
    """Yield the files of a serialized FileDescriptorSet, whose own class takes long to load."""
    at = 0
    while at < len(raw):
        if raw[at] != _FILE_TAG:
            raise _InternalError("lance.binpb is damaged: install lance-nb again")
        at += 1
        size = shift = 0
        while raw[at] & 0x80:
            size |= (raw[at] & 0x7F) << shift
            shift += 7
            at += 1
        size |= raw[at] << shift
        at += 1
        yield raw[at : at + size]
        at += size


_modules = _load()
encodings = _modules["encodings"]
encodings21 = _modules["encodings21"]
file = _modules["file"]
file2 = _modules["file2"]
index = _modules["index"]
rowids = _modules["rowids"]
table = _modules["table"]
transaction = _modules["transaction"]
