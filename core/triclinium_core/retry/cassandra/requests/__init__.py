"""State machine that sends one request to the nodes of its query plan: events in, ordered actions out.

``request_machine`` has the machine, and ``states`` its transition tables. ``judgement`` decides what the machine does
after an error. ``query_plan`` selects the next node. ``speculation`` decides when a speculative execution starts.
``history`` records the executions and their errors. ``cassandra_request``, ``events`` and ``actions`` have the values
that the machine takes and returns.
"""
