"""Registration of Arrow extension types, in a process that may have pylance's registered too."""

from __future__ import annotations

import pyarrow as pa


def register(extension: pa.ExtensionType) -> None:
    """Let Arrow know an extension type by its name; one that has the name already stays."""
    try:
        pa.register_extension_type(extension)
    except pa.ArrowKeyError:
        return  # registered by pylance, or by this module loaded again
