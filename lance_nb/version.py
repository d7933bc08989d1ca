"""The version of the package; the build, manifests and ``lance-nb --version`` read it here."""

__version__ = "0.1.0"
