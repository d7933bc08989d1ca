"""The top-level module ``pyspark_lance_nb`` of a wheel, by which Spark finds the data source.

PySpark imports every top-level module whose name begins with ``pyspark_`` and registers its
``DefaultSource``. Only the name ``lance_nb`` is registered here: whether another source already
uses the name ``lance`` is known only where there is a session (``lance_nb.spark.register``).

Source: ``pyspark.sql.worker.lookup_data_sources`` of PySpark 4.3.
"""

from lance_nb.spark.source.data_source import LanceSource as DefaultSource

__all__ = ["DefaultSource"]
