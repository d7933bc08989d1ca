"""The tables of a database."""
