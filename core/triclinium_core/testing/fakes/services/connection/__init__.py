"""One connection of one client: HTTP as a server speaks it, who is let in, and how an answer travels or is spoilt."""
