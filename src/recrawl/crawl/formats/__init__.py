"""Documents that list pages or items: sitemaps, feeds; which kind a body is."""
