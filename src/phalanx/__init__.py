"""phalanx starts one TensorFlow program as a cluster, watches it, and names the culprit when something breaks.

Only what users may import from Python stands here; everything else is reached by the command line.
"""

__version__ = "0.1.0"
