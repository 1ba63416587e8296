"""The HTTP interface under ``/v1``: one table of endpoints, from which routes, checks and the OpenAPI document come."""
