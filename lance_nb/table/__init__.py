"""One version of a dataset, read side: versions, refs, fragments, scans, takes, inspection.

Functions import what opening a dataset and reading rows do without.
"""
