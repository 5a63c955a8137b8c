"""Tasks: which data a job reads, which loss it minimises, and how it scores outputs."""
