"""A cluster: a run is a handful of plain objects, and one pod is one host."""
