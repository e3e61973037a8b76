"""What agents, the lead and people say to each other, how it is signed and how it is sent. Knows neither side."""
