"""The table of rules, a module per subject; a rule is a row, and `check` puts the rows together."""
