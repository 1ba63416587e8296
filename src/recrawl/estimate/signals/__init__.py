"""Precision and recall of change signals from crawl outcomes."""
