"""The Cassandra driver's tradition: a policy gives a verdict on each failure, over a query plan. Standard library only.

Tables first (``consistency``, ``errors``), then what a policy answers (``verdicts``) and the policies themselves
(``policy``, ``policies``).

Source: the retry page of the Cassandra Java driver; where it is silent, the driver's code.
"""
