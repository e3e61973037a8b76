"""Manifests of other launchers → job.yaml: one module a dialect, and a list of what became of every field."""
