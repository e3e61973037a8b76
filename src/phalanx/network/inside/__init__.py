"""What is sent to each host and runs there; here nothing imports it."""
