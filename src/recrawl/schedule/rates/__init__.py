"""Policies that execute fixed crawl rates, by deadline or at random."""
