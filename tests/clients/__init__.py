"""Programs of widely used libraries on simulated NPUs, each beside the same on the CPU; ``make clients`` runs them."""
