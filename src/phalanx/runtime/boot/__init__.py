"""The folder PYTHONPATH names: what a task's interpreter finds here, it runs before the user's program."""
