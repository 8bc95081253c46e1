"""Calls of elementwise functions and their in-place forms, for the formulas in formulas/elementwise."""

from __future__ import annotations


def calls_of(operator: str, arguments: str, out: str = "FLOAT[2,4]") -> list[str]:
    """The call of an operator that writes `out`, and that of its in-place form, in the syntax of samples.txt.

    A formula ignores the call of a form that does not exist.
    """
    inplace = arguments.replace("self=", "selfRef=", 1)
    return [f"aclnn{operator} {arguments} out={out}", f"aclnnInplace{operator} {inplace}"]


def calls_on(operator: str, *values: str, dtype: str = "FLOAT", out: str = "FLOAT") -> list[str]:
    """Such calls with one tensor, of each list of eight values."""
    return [call for each in values for call in calls_of(operator, f"self={dtype}[2,4]:{each}", f"{out}[2,4]")]
