"""Staged edits that wait to be committed, shared by the explorer and ``%lance``."""
