"""The table format as values: bytes <-> frozen dataclasses. No input or output happens here."""
