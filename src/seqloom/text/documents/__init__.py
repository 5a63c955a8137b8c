"""Documents: finds the texts of a file that can be translated, and keeps everything else."""
