"""What outcomes of crawls do to the engine: its kernels, calibrated probabilities, lessons for other engines."""
