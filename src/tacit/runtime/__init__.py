"""What the outside world is reached through: files, run folders, tables, clusters, workers, entropy."""
