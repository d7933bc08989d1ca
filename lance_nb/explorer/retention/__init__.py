"""The simulator of cleanups, which opens below the timeline."""
