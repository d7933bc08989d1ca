from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.dataset.verbs.schema_evolution import look
from lance_nb.errors import ColumnNotFoundError, SchemaMismatchError
from lance_nb.transactions.schema_change import Alteration


def test_a_cast_names_the_columns_to_write_and_their_new_ids(make):
    snapshot = make().opened[1]
    asked = [Alteration.of({"path": "id", "data_type": pa.int32(), "name": "number"})]
    found = look(snapshot, asked)
    assert found.schema.names[0] == "number"
    assert found.cast is not None
    assert found.cast.part.names == ["id"]  # as it is read
    assert found.cast.part.fields[0].id > snapshot.manifest.schema.max_field_id


def test_a_new_name_is_the_schema_alone(make):
    found = look(make().opened[1], [Alteration.of({"path": "id", "name": "number"})])
    assert found.cast is None
    assert found.keeps_nullability


def test_what_cannot_be_is_refused(make):
    snapshot = make().opened[1]
    with pytest.raises(ColumnNotFoundError):
        look(snapshot, [Alteration.of({"path": "nope", "name": "x"})])
    with pytest.raises(SchemaMismatchError):
        look(snapshot, [Alteration.of({"path": "id", "data_type": pa.binary()})])
