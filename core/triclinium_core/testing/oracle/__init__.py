"""Laws that hold under every fault: possible results, permitted requests, and excuses for failures."""
