"""A market place that pays its sellers."""
