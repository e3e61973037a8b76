"""What rides inside the user's process: standard library only, written so that Python 3.9 reads it."""
