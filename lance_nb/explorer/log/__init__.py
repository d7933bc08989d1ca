"""The tab of the log: what was done, and how it is undone."""
