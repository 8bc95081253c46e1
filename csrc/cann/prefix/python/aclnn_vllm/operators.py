"""All operators: importing a module defines those of its family."""

from . import caches, experts, lora, norms, rotary  # noqa: F401
