"""The crawl loop: pick, fetch, detect, record; audits, commands from other processes, counters."""
