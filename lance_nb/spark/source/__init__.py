"""The data source ``lance_nb``: what PySpark's Python data source API asks for."""
