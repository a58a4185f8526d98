"""Explanation of the attempts of operations with a Smithy strategy, which gets the responses to the attempts."""
