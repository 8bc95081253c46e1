"""Programs of widely used libraries on simulated NPUs, compared with the CPU; ``make clients`` runs them."""
