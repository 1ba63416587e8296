"""Recorded traces: files, git histories, the public Bing data."""
