"""Named byte objects behind one small interface; this floor knows nothing of Lance.

``base`` says what a store is, ``registry.open_store`` finds the one for a URI, one file per store.
"""
