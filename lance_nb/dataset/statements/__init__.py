"""Statements of Lance's SQL, translated for DuckDB: names, types and values as in pylance."""
