"""Faults of jobs and streams on Spark."""
