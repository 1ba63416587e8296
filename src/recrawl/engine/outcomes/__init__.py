"""What the outcome of a crawl does to the engine: one crawl or many, probabilities calibrated, lessons for others."""
