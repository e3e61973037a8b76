"""The command line: one file a verb; parse, call one function, print. No decisions."""
