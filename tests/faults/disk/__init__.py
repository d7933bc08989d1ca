"""Faults of writers on a local disk: killed, without power, beside pylance, told of errors."""
