"""One per run: rendezvous, decisions carried out, the records kept, people answered. Knows agents only by their messages."""
