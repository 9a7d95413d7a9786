"""Access to the outside world: files, run folders, tables, clusters, workers and entropy."""
