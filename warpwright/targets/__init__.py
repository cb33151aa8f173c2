"""Targets: the baseline programs of a task on a device, and (from facts.py) what the device is."""

from warpwright.targets.baselines import BASELINES, baselines, names_for
from warpwright.timing.facts import device_facts, last_level_cache_bytes, machine_name

__all__ = ["BASELINES", "baselines", "device_facts", "last_level_cache_bytes", "machine_name", "names_for"]
