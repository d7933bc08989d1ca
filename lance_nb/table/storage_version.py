"""Which file version a dataset writes: said in its manifest, or to be told from its files.

Manifests of 2023 and early 2024 say nothing: then the data files decide, and in a dataset without
files the flag that marked the second format. They decide too where a manifest says 0.1 and its
files are later ones: the next version that is written says what they are.

Source: message DataStorageFormat of lance.table; behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from lance_nb.format.feature_flags import V2_FORMAT
from lance_nb.format.manifest import Manifest

_LEGACY, _STABLE = "0.1", "2.2"


def storage_version(manifest: Manifest) -> str:
    """Return the file version of newly written data, for example "2.2"."""
    said = None if manifest.data_format is None else manifest.data_format.version
    if said is not None and said != _LEGACY:
        return said
    for fragment in manifest.fragments:
        for file in fragment.files:
            if file.is_legacy:
                return _LEGACY
            # Files of the first 2.0 releases are recorded as 0.3.
            major, minor = (2, 0) if file.file_version == (0, 3) else file.file_version
            return f"{major}.{minor}"
    return said or (_STABLE if manifest.writer_feature_flags & V2_FORMAT else _LEGACY)
