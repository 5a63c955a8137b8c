"""A comparison of seqloom with other toolkits in alternating time windows."""
