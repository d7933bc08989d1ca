"""The loops over bytes: numpy arrays and plain numbers in and out, no messages, no codecs."""
