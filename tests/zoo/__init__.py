"""Healthy trainings of many kinds. Each module has `build() -> Subject`; no check may alarm on any of them."""
