"""The tests. A package, so that ``tests.support`` means this folder and no other."""
