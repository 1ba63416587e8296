"""IndexNow, the part of the receiver, without input and output."""
