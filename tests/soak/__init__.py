"""Hours in minutes: one client at work on real sockets while everything goes wrong, and what is left of it afterwards.

``python -m tests.soak --seconds 600`` opens three fake nodes in a process of their own, where something goes wrong all
along, and has 64 tasks read and write through one client. At the end nothing may be left over, memory must not have
grown, and what callers were told must fit what the nodes did.
"""
