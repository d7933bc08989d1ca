"""One module per arm of ``ArrayEncoding``; only ``v2_0.registry`` imports them all."""
