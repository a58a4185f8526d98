"""The whole client as one pure machine: what it hears, what it orders, and when it wants to know the time."""
