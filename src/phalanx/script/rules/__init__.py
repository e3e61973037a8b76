"""The table of rules on scripts, a module per subject; a rule is a row, and `check` puts the rows together."""
