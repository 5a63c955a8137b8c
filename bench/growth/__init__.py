"""What work costs as it grows: memory, time to the first step, decoding, attention, start-up."""
