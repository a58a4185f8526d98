"""Explanations for a call with a Smithy strategy: its attempts' responses, passed to the strategy."""
