"""Operators that programs call by name (aclop): how to call them, and their expected results."""
