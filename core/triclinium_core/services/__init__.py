"""The services over HTTP: query, analytics, search, views and management, on connections and pools of their own."""
