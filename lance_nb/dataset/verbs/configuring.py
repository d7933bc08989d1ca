"""Settings of a dataset: configuration, table metadata, schema metadata, field metadata.

Every map is changed the same way: keys with a value are set, keys with None are removed, and with
``replace`` nothing else stays.

Source: message ``Transaction.UpdateConfig`` of lance.table; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_nb.errors import InvalidInputError
from lance_nb.format.schema import Schema
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap

Values = Mapping[str, str | None]


def change_config(values: Values, replace: bool) -> UpdateConfig:
    """Return the operation that changes the table configuration."""
    return UpdateConfig(config_updates=updates_of(values, replace))


def change_metadata(values: Values, replace: bool) -> UpdateConfig:
    """Return the operation that changes the table metadata."""
    return UpdateConfig(table_metadata_updates=updates_of(values, replace))


def change_schema_metadata(values: Values, replace: bool) -> UpdateConfig:
    """Return the operation that changes the schema's metadata."""
    return UpdateConfig(schema_metadata_updates=updates_of(values, replace))


def change_field_metadata(
    schema: Schema, fields: Mapping[str, Values], replace: bool
) -> UpdateConfig:
    """Return the operation that changes metadata of fields. Raises ColumnNotFoundError."""
    updates = {schema.field(name).id: updates_of(one, replace) for name, one in fields.items()}
    return UpdateConfig(field_metadata_updates=updates)


def updates_of(values: Values, replace: bool) -> UpdateMap:
    """Return the changes of one map. Raises InvalidInputError for what is no text."""
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str | None):
            raise InvalidInputError(
                f"settings are text: {key!r} = {value!r} is {type(value).__name__}; "
                "use str(), or None to remove the key"
            )
        try:
            (key + (value or "")).encode()
        except UnicodeEncodeError as exc:
            raise InvalidInputError(
                f"settings are UTF-8 text, which {key!r} is not: {exc}"
            ) from exc
    return UpdateMap(dict(values), replace)
