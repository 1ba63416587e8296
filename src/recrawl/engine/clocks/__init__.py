"""Clocks: pages of a folder change together; the folder's time runs faster while more changes are found."""
