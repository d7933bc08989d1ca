"""The house rules, as functions from a source file to the list of its offences.

``tests/test_house.py`` runs them over the repository, and each over planted offences.
"""
