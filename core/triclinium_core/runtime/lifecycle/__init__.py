"""Life cycle of key-value operations and HTTP requests: attempts, retries, deadlines and permits."""
