"""View models: plain values made from a dataset, bounded in rows and bytes, without any widget."""
