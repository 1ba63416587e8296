"""Change rates from crawl outcomes: estimators, posteriors, priors."""
