"""Speed of the HTTP server and of its web page."""
