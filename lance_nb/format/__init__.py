"""The table format as values: bytes <-> frozen dataclasses. Nothing here does input or output."""
