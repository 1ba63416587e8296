"""Recorded traces through the real crawler: served as a web in memory, crawled by the manual clock, judged exactly."""
