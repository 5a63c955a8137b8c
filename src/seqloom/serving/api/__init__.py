"""The HTTP API: the routes, the schemas of requests and responses, and the error responses."""
