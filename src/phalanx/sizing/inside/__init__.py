"""What runs in the user's interpreter while `phalanx advise` looks at a script: it traces the first step."""
