"""The tab of storage: fragments, deleted rows, space and advice."""
