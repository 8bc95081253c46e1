"""Retrieval of features, of which the host CANN has nothing."""

from ._prototypes import nothing

__getattr__ = nothing(__name__, "it simulates no unit for the retrieval of features")
