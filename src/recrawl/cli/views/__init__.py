"""Output of the commands: reports, live views, plots."""
