"""One hypothesis profile for all tests: the same examples in every run, no time limit (kernels compile first)."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "recrawl",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("recrawl")
