"""The Cassandra driver's tradition: a policy gives a verdict on each failure, over a query plan. Standard library only.

Here are the words (``consistency``, ``errors``), what a policy answers (``verdicts``) and the policies themselves
(``policy``, ``policies``). ``requests`` leads a request from node to node, ``profiles`` chooses policies by name, and
``explaining`` tells of single decisions. The rooms import what stands here; the latter two import ``requests`` as well.

Source: the retry page of the Cassandra Java driver; where it is silent, the driver's code.
"""
