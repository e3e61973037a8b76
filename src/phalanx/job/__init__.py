"""What you declare: the model of job.yaml, its file, its flags, and the pure step from there to an Outline."""
