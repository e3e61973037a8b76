"""What will run: the outline (no addresses), the plan (every task placed and named), and the pure step between them."""
