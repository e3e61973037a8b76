"""phalanx starts one TensorFlow program as a cluster: it writes TF_CONFIG, proves it, starts every task, watches them and names the culprit.

Only what users may import from Python stands here; everything else is reached by the command line.
"""

__version__ = "0.1.0"
