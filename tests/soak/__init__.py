"""Soak test: one client uses real sockets during continuous faults, and nothing may be left over afterwards.

``python -m tests.soak --seconds 600`` opens three fake nodes in a separate process with continuous faults, and lets 64
tasks read and write through one client. At the end nothing may be left over, memory must not have grown, and the
results of callers must agree with the nodes.
"""
