"""What Spark finds by itself: in a wheel this module is ``pyspark_lance_nb``, at the top level.

PySpark imports every top-level module whose name begins with ``pyspark_`` and registers its
``DefaultSource``. Only the name ``lance_nb`` is given away here: whether another source has the
name ``lance`` can be asked where there is a session (``lance_nb.spark.register``).

Source: ``pyspark.sql.worker.lookup_data_sources`` of PySpark 4.3.
"""

from lance_nb.spark.source.data_source import LanceSource as DefaultSource

__all__ = ["DefaultSource"]
