"""What agents, the lead and people say to each other: messages, how they are signed, and how they are sent. Knows neither side."""
