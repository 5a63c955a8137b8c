"""The HTTP service.

It returns predictions of trained runs, in one response or as a stream. Concurrent requests are
merged into batches.
"""
