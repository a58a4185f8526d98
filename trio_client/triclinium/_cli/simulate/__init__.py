"""``triclinium simulate``: what retry strategies do to an outage, as figures and as a picture."""
