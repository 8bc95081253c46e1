"""Operators that programs call by name (aclop): how to call them, and what they should give."""
