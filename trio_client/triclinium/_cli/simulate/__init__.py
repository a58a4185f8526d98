"""``triclinium simulate``: effects of retry strategies on an outage, as figures and as a picture."""
