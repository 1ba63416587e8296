"""Signals of change: what sites say about their pages, and how it is received and kept."""
