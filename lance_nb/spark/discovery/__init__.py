"""How Spark finds the data source: a module at the top level, and what installs it there."""
