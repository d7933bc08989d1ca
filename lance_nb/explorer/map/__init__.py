"""The tab of the map: rows placed by their vectors."""
