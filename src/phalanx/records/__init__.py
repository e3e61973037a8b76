"""What a run leaves behind: its folder, its events as written and as read, its report; and the index of all runs."""
