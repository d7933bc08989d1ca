"""What an operation touches: the only thing the rules of conflict resolution look at.

Each operation reports a footprint; fields that mean nothing to it stay empty. Rules compare two
footprints, so that no operation needs to know another.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.manifest import BasePath

CONFIG = "config"
TABLE_METADATA = "table metadata"
SCHEMA_METADATA = "schema metadata"
FIELD_METADATA = "field metadata"

Ids = frozenset[int]
NOTHING: Ids = frozenset()


@dataclass(frozen=True, slots=True)
class Settings:
    """The key-value maps an operation changes.

    ``keys`` holds (kind of map, field id or -1, key); ``replaced`` the (kind, field id) of maps
    that are replaced as a whole.
    """

    keys: frozenset[tuple[str, int, str]] = frozenset()
    replaced: frozenset[tuple[str, int]] = frozenset()

    @property
    def maps(self) -> frozenset[tuple[str, int]]:
        """The maps that are changed at all."""
        return self.replaced | {(kind, field) for kind, field, _ in self.keys}

    @property
    def touches_schema(self) -> bool:
        """Whether metadata of the schema or of a field is changed."""
        return any(kind in (SCHEMA_METADATA, FIELD_METADATA) for kind, _ in self.maps)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one operation touches.

    ``changed_fragments``: existing ones that stay and get other rows, files or deletions.
    ``removed_fragments``: existing ones that vanish. ``groups``: fragments rewritten together.
    ``moves_rows``: rows of changed fragments are written anew into other fragments.
    ``fields_modified``: ids of fields whose stored values change in place.
    ``replaced``: (fragment id, field id) of column data that is replaced.
    ``field_ids``: all fields of the schema it leaves behind, None if it keeps the schema.
    ``supplies_values``: it writes values that a stricter schema might refuse.
    ``may_alter_nullability``: it changes the schema without saying that nulls stay allowed.
    ``inserted_keys``: keys of rows that were inserted because nobody had them.
    ``compacted``: (shard id, generation) of write-ahead logs it marks as merged.
    """

    changed_fragments: Ids = NOTHING
    removed_fragments: Ids = NOTHING
    groups: tuple[Ids, ...] = ()
    moves_rows: bool = False
    fields_modified: Ids = NOTHING
    replaced: frozenset[tuple[int, int]] = frozenset()
    field_ids: Ids | None = None
    supplies_values: bool = False
    may_alter_nullability: bool = False
    settings: Settings = Settings()
    new_indices: tuple[IndexMetadata, ...] = ()
    removed_indices: tuple[IndexMetadata, ...] = ()
    carries_reuse_index: bool = False
    new_bases: tuple[BasePath, ...] = ()
    inserted_keys: KeyFilter | None = None
    compacted: tuple[tuple[str, int], ...] = ()

    @property
    def touched(self) -> Ids:
        """Every existing fragment that is changed or removed."""
        return self.changed_fragments | self.removed_fragments
