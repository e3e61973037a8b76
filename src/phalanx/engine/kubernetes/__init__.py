"""A run as objects of Kubernetes: which they are, how they are applied, and how it is followed from outside."""
