"""Policies compared on the same traces."""
