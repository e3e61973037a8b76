"""One per run: rendezvous, decisions carried out, records kept, people answered. Knows agents by messages only."""
