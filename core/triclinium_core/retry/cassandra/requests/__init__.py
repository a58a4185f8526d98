"""One request over its query plan, as a machine: events in, ordered actions out.

``machine`` is that machine, and ``states`` has its tables. ``judgement`` knows where an error leads,
``query_plan`` and ``speculation`` where and when the next execution begins, ``history`` its executions and their errors.
"""
