"""One file per operation of a transaction; none knows another (see ``transactions.operation``)."""
