"""``triclinium simulate``: effects of retry strategies during an outage, as figures and as a picture."""
