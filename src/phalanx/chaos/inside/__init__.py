"""What rides inside the processes of a run that `phalanx chaos` starts. Standard library only."""
