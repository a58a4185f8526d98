"""The services over HTTP at work: endpoints, their connections, and the requests on them."""
