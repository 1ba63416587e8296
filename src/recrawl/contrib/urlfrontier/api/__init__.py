"""The URL Frontier API as it is spoken: messages, calls, streams, the server and a client."""
