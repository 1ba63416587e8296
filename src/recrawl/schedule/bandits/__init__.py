"""Bandits over crawl strategies."""
