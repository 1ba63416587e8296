"""Reading of crawl logs: text and encodings, roles of columns, formats by shape, cells, and computed changes."""
