"""WebSub (W3C, 2018), the part of the subscriber, without input and output."""
