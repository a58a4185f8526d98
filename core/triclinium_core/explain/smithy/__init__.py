"""Explanations for a call under a Smithy strategy: the responses of its attempts, played to the strategy."""
