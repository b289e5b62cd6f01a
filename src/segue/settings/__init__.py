"""Settings: a field, its default and one sentence each. The outer packages read them and pass plain values down."""

from segue.settings.agents import BUILT_IN_AGENTS
from segue.settings.fields import Settings
from segue.settings.loading import load, work_in, work_of_repository

__all__ = ["BUILT_IN_AGENTS", "Settings", "load", "work_in", "work_of_repository"]
