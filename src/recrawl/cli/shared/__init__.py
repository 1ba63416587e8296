"""Modules that several commands share: options, outputs, tables, crawl logs."""
