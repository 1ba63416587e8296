"""Audits of a live crawl: a random sample of pages shows how fresh the copies are."""
