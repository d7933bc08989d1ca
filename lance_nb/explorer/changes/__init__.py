"""The tab of changes between two versions."""
