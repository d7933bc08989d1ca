"""Faults of stores in memory, where time and chance come from a seed."""
