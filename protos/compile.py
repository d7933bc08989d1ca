"""Compile the .proto files beside this script into ``lance_nb/_pb``.

Run ``python protos/compile.py`` after editing a .proto file, and ``--check`` (as CI does) to learn
whether the generated files are stale. Needs grpcio-tools, which the ``dev`` and ``test`` extras
install.

What is generated, and why not the ordinary ``*_pb2.py`` modules: upstream's proto files have
generic names (``table.proto``), and ordinary generated code registers them in the pool that the
whole process shares. So one descriptor set (``lance.binpb``) is written, which ``lance_nb._pb``
loads into a pool of its own, plus one ``.pyi`` per file for the type checker.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "lance_nb" / "_pb"


def generate(out: Path) -> None:
    """Write ``lance.binpb`` and the stubs into ``out``."""
    from google.protobuf import descriptor_pb2
    from grpc_tools import protoc

    names = sorted(path.name for path in HERE.glob("*.proto"))
    descriptor_set = out / "lance.binpb"
    arguments = ["protoc", f"-I{HERE}", f"--descriptor_set_out={descriptor_set}"]
    if protoc.main([*arguments, f"--pyi_out={out}", *names]) != 0:
        sys.exit("protoc failed: see its message above")
    # Source positions and json names differ between protoc releases and nobody needs them.
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set.read_bytes())
    for file in files.file:
        file.ClearField("source_code_info")
    descriptor_set.write_bytes(files.SerializeToString(deterministic=True))
    for stub in out.glob("*_pb2.pyi"):
        text = re.sub(
            r"^import (\w+)_pb2 as",
            r"from lance_nb._pb import \1 as",
            stub.read_text(),
            flags=re.MULTILINE,
        )
        (out / f"{stub.stem.removesuffix('_pb2')}.pyi").write_text(text)
        stub.unlink()


def stale(fresh: Path) -> list[str]:
    """Return the names of generated files that differ from, or lack, their fresh version."""
    names = {path.name for path in fresh.iterdir()}
    names |= {path.name for path in TARGET.glob("*.pyi")} - {"__init__.pyi"}
    return sorted(
        name
        for name in names
        if not (fresh / name).exists()
        or not (TARGET / name).exists()
        or (fresh / name).read_bytes() != (TARGET / name).read_bytes()
    )


def main() -> None:
    """Generate, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when stale")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        old = stale(fresh)
        if options.check:
            if old:
                sys.exit(f"stale generated files: {', '.join(old)}; run python protos/compile.py")
            print("generated protobuf files are up to date")
            return
        for path in fresh.iterdir():
            (TARGET / path.name).write_bytes(path.read_bytes())
        print(f"wrote {len(list(fresh.iterdir()))} files to {TARGET.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
