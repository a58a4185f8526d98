"""One request over its query plan: a machine that hears what happened and orders what is to be done.

``machine`` is that machine, and ``states`` has its tables. ``judgement`` knows where an error leads,
``query_plan`` and ``speculation`` where and when the next execution begins, ``history`` its executions and their errors.
"""
