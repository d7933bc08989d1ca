"""Indices of vectors: partitions around centroids (IVF), with vectors stored as they are or coded.

``search`` finds the rows nearest to a query. ``ivf`` opens the files of a segment; ``flat``,
``product`` and ``scalar`` are the ways in which vectors are stored.
"""
