"""Run large operations as tasks, in this process or on Spark, and commit them once.

::

    from lance_nb import spark as lance_spark

    lance_spark.append(ds, "exports/*.parquet")           explain(plan) says on which engine
    lance_spark.delete(ds, "label IS NULL", engine="spark")
    lance_spark.write(frame, "photos.lance", mode="create")
    lance_spark.register(session)                         spark.read.format("lance_nb").load(uri)

Public names are imported on first use: every Python worker of Spark imports this package, and most
of its modules are needed on the driver only.

The engine "spark" and the data source need the extra ``spark`` and Java 17; the engine "local"
needs neither. No engine starts processes that run the user's script again.
"""

import lazy_loader as _lazy_loader

# The names are listed in the stub beside this file.
__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
