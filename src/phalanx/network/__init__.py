"""How much each host carries to each other, measured over any command that reaches them; nothing is installed there."""
