"""Statements that try to reach something other than the dataset they are asked about.

``{secret}`` is a file that holds ``CANARY``, ``{folder}`` a folder that must stay as it is, and
``a_variable`` an Arrow table that the caller has under that name.
"""

from __future__ import annotations

from pathlib import Path

CANARY = "TOPSECRET"

ESCAPES = {
    "read_text": "SELECT * FROM read_text('{secret}')",
    "read_csv": "SELECT * FROM read_csv('{secret}')",
    "read_csv_auto": "SELECT * FROM read_csv_auto('{secret}', header=false)",
    "sniff_csv": "SELECT * FROM sniff_csv('{secret}')",
    "read_blob": "SELECT * FROM read_blob('{secret}')",
    "read_json": "SELECT * FROM read_json('{secret}')",
    "read_parquet": "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "parquet_metadata": "SELECT * FROM parquet_metadata('{folder}/x.parquet')",
    "glob": "SELECT * FROM glob('{folder}/*')",
    "glob of all": "SELECT * FROM glob('/etc/*')",
    "a file as a table": "SELECT * FROM '{secret}'",
    "a file that is not text": "SELECT * FROM '/etc/passwd'",
    "a web address": "SELECT * FROM 'http://127.0.0.1:9/x.csv'",
    "a bucket": "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "read_csv of the web": "SELECT * FROM read_csv('https://127.0.0.1:9/x.csv')",
    "inside a call of query": "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
    "in a subquery": "SELECT (SELECT content FROM read_text('{secret}')) AS x FROM dataset LIMIT 1",
    "in a macro": "CREATE MACRO f() AS TABLE SELECT * FROM read_text('{secret}')",
    "copy to": "COPY (SELECT 1 AS x) TO '{folder}/out.csv'",
    "copy to parquet": "COPY dataset TO '{folder}/out.parquet' (FORMAT parquet)",
    "copy to the terminal": "COPY (SELECT 1 AS x) TO '/dev/stderr'",
    "copy after a query": "SELECT 1; COPY (SELECT 1 AS x) TO '{folder}/out.csv'; SELECT 2",
    "export database": "EXPORT DATABASE '{folder}/exported'",
    "import database": "IMPORT DATABASE '{folder}'",
    "attach": "ATTACH '{folder}/new.db'",
    "attach the web": "ATTACH 'http://127.0.0.1:9/x.db'",
    "install": "INSTALL httpfs",
    "force install": "FORCE INSTALL httpfs FROM 'http://127.0.0.1:9'",
    "load": "LOAD httpfs",
    "load a file": "LOAD '{folder}/x.duckdb_extension'",
    "set external access": "SET enable_external_access = true",
    "set global": "SET GLOBAL temp_directory = '{folder}'",
    "set after a query": "SELECT 1; SET enable_external_access = true; SELECT 2",
    "set the lock": "SET lock_configuration = false",
    "reset the lock": "RESET lock_configuration",
    "reset external access": "RESET enable_external_access",
    "pragma": "PRAGMA temp_directory = '{folder}'",
    "pragma of the log": "PRAGMA log_query_path = '{folder}/queries'",
    "profiling to a file": "SET profiling_output = '{folder}/profile.json'",
    "logging to a file": "CALL enable_logging(storage = 'file', storage_path = '{folder}/logs')",
    "a secret on disk": "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "getenv": "SELECT getenv('PATH')",
    "a variable of Python": "SELECT * FROM a_variable",
    "a variable by its name as text": "SELECT * FROM query_table('a_variable')",
    "a variable of the engine": "SELECT * FROM connection",
    "the dataset of the engine": "SELECT * FROM self",
}


def written(statement: str, folder: Path) -> str:
    """Fill a statement's places in, making the file with the secret if it is not there."""
    secret = folder / "secret.csv"
    secret.write_text(f"{CANARY}\n")
    return statement.format(secret=secret, folder=folder)
