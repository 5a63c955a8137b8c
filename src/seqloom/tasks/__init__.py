"""Tasks. A task defines which data is read, which loss is minimised, and how outputs are scored."""
