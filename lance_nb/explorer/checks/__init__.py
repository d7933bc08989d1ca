"""The tab of checks: expectations and where they fail."""
