"""All operators: importing a module defines those of its family."""

from __future__ import annotations

from . import (  # noqa: F401
    attention,
    caches,
    compressed,
    delta_rule,
    experts,
    hyper_connections,
    lora,
    norms,
    quantized,
    refused,
    rotary,
    speculative,
)
