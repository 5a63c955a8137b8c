"""Complete run files that come with seqloom; `seqloom train NAME` finds them by name."""
