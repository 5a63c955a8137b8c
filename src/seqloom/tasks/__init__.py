"""What a job means: what is read, what is learned, how it is scored. One file a task."""
