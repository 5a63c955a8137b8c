"""Work that runs for hours: files of any size, sweeps, trackers, synthetic pairs."""
