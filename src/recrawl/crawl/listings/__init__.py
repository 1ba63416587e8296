"""Listings: sitemaps, feeds and index pages, what they say of pages, and when they are polled."""
