"""Commands that run simulated worlds: the demo, simulations, traces, published figures."""
