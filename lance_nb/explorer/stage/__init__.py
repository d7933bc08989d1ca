"""The tab of staged edits: forms, cards and commits."""
