"""Figures and texts about a crawl that commands and the dashboard share; they only read."""
