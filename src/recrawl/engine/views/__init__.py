"""Questions to an engine that change nothing: explain, forecast, staleness ledger."""
