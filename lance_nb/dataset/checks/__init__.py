"""Check versions of a dataset against its expectations; results are cached by fragment."""
