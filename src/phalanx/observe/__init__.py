"""What people see of a run: views that follow it, its report in words, its timeline. No influence on the run."""
