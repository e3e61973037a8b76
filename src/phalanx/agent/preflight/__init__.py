"""What one host looks at before step one, a module a noun; what it means is judged in `decide.preflight`."""
