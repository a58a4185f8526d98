"""The Cassandra driver's tradition: a policy gives a verdict on each failure, over a query plan. Standard library only.

Here are the words (``consistency``, ``errors``), what a policy answers (``verdicts``) and the policies themselves
(``policy``, ``policies``). ``requests`` leads a request from node to node, and ``profiles`` chooses policies by name.

Source: the retry page of the Cassandra Java driver; where it is silent, the driver's code.
"""
