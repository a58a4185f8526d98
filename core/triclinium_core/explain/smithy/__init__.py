"""Explanation of the attempts that a Smithy strategy permits, given the responses to them."""
