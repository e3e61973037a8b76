"""What the user's script and its interpreter say before anything runs: read from files, never imported."""
