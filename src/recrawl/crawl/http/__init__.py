"""One HTTP fetch: connections, limits, encodings, status codes and failures; the same in memory for tests."""
