"""What counts as a change: detectors that turn a page into a digest."""
