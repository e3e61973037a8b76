"""The heart: what a TF_CONFIG is, and everything one can say about it. Standard library only; usable alone."""
