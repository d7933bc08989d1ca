"""The write side: operations as values, the manifests that they make, and their conflicts."""
