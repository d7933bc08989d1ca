"""The write side: operations as values, how they become manifests, and how they get along."""
