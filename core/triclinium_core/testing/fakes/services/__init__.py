"""The services of a fake node that speak HTTP: who is let in, what is asked, what is answered, and how it travels."""
