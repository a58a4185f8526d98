"""The HTTP services of a fake node: authentication, requests, answers and their delivery."""
