"""The schema of a run file. No torch, no files of data: a wrong recipe is answered at once."""
