"""Why a call is retried under a Smithy strategy: the responses of its attempts, played to the strategy."""
