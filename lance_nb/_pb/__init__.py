"""The wire messages of Lance, loaded into a descriptor pool of our own.

``from lance_nb._pb import table`` gives a module with one class per message (``table.Manifest``);
enum values are attributes of their module or message class. The pool is
private because upstream's file names (``table.proto``, ``file.proto``) are generic: another package
in the same kernel may already have registered them in the shared pool.

Generated files here (``lance.binpb``, ``*.pyi`` but not ``__init__.pyi``) come from
``python protos/compile.py``; never edit them by hand.

Source: the messages of lance.table, lance.file, lance.encodings and lance.index as pylance 14.0.2
reads and writes them; ``protos/`` holds them in our own words.
"""

import sys as _sys
from importlib.resources import files as _files
from types import ModuleType as _ModuleType
from typing import Any as _Any

from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import descriptor_pool as _descriptor_pool
from google.protobuf import message_factory as _message_factory
from google.protobuf.internal import enum_type_wrapper as _enums

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


def _load() -> dict[str, _ModuleType]:
    pool = _descriptor_pool.DescriptorPool()
    raw = _files(__name__).joinpath("lance.binpb").read_bytes()
    descriptors = _descriptor_pb2.FileDescriptorSet.FromString(raw)
    for file in descriptors.file:
        pool.AddSerializedFile(file.SerializeToString())
    modules = {}
    for file in descriptors.file:
        found = pool.FindFileByName(file.name)
        members: dict[str, _Any] = {
            name: _message_factory.GetMessageClass(message)
            for name, message in found.message_types_by_name.items()
        }
        for name, enum in found.enum_types_by_name.items():
            members[name] = _enums.EnumTypeWrapper(enum)
            members.update((value.name, value.number) for value in enum.values)
        name = file.name.removesuffix(".proto")
        module = _ModuleType(f"{__name__}.{name}", f"Messages of protos/{file.name}.")
        vars(module).update(members)
        _sys.modules[module.__name__] = module
        modules[name] = module
    return modules


_modules = _load()
encodings = _modules["encodings"]
encodings21 = _modules["encodings21"]
file = _modules["file"]
file2 = _modules["file2"]
index = _modules["index"]
rowids = _modules["rowids"]
table = _modules["table"]
transaction = _modules["transaction"]
