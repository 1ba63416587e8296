"""Events delivered to subscribers: in-process callbacks and webhooks."""
