"""Differential testing: random datasets, histories and reads, with pylance as the oracle.

``schemas`` and ``values`` make columns and rows, ``histories`` makes operations on a dataset,
``reads`` makes ways to read it, ``play`` runs each of them with both libraries and compares,
``shrinking`` makes a failing case small, ``known`` lists the differences that are accepted and why,
``run`` is the command line. Everything follows from a seed.
"""
