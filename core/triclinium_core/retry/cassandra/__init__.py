"""The Cassandra driver's tradition: a policy gives a verdict on each failure, over a query plan. Standard library only.

Tables first (``consistency``, ``errors``, ``routes``), then what a policy answers (``verdicts``), the policies
themselves (``policy``, ``policies``) and who chooses them (``profiles``); then the pure machine that leads a request
from node to node (``request_machine``).

Source: the retry page of the Cassandra Java driver; where it is silent, the driver's code.
"""
