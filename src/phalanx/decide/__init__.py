"""Decisions without effects: pure functions of the run's state and the time. No clock, no I/O, no logger."""
