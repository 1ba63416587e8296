"""How an engine chooses among pages, beyond the crawl value: rates planned for them, rules, bandits and prices."""
