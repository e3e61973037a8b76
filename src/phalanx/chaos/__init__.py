"""Faults on purpose: what is done to a run from outside, when, and what comes of it. Nothing below knows it."""
