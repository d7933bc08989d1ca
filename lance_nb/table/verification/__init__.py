"""Verification of a dataset: a module per object of the format that is checked, and a report."""
