"""A plugin of pytest: tests of operators import the module without vLLM's plugins, which an engine loads."""

from . import register

register()
