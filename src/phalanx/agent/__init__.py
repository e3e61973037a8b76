"""One per host: owns its host's ports, processes and their output. Knows the lead only by its messages."""
