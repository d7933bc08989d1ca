"""Named byte objects behind one small interface; this package does not depend on Lance.

``base`` defines the store interface, ``registry.open_store`` finds the store of a URI; one module
per store.
"""
