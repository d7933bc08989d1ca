"""The tasks of each kind of operation."""
