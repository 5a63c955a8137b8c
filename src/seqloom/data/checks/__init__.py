"""Dataset checks: statistics, warnings and errors, for `seqloom doctor`."""
