"""One request over its query plan, as a machine: events in, ordered actions out.

``request_machine`` has the machine and ``states`` its tables. ``judgement`` decides what follows an error.
``query_plan`` selects the node of the next execution and ``speculation`` its time. ``history`` records the executions
and their errors.
"""
