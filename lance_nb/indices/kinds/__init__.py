"""Readers of index files, one module for each kind."""
