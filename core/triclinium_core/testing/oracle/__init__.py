"""Laws that a client keeps under every fault: possible results, permitted requests, and valid causes of failures."""
