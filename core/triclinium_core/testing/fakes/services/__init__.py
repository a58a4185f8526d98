"""HTTP services of a fake node: authentication, requests, responses and their delivery."""
