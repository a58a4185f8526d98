"""Why a request to Cassandra is retried: one error, put to the judgement that the request machine follows."""
