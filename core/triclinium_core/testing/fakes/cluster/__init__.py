"""The fake nodes themselves, alone or as a cluster: faults strike here, replies leave, and commands are logged."""
