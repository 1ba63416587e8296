"""What others say of changes, by HTTP: signals, pings of IndexNow, deliveries of WebSub hubs; pings that are sent."""
