"""The loops over bytes: numpy arrays and plain numbers in and out, no protobuf, no codec."""
