"""Politeness: robots.txt, delay and concurrency per host, the request budget, opening hours."""
