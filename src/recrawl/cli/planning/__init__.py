"""Commands that compute from files of pages and crawl logs: rates, schedules, budgets, predictions."""
