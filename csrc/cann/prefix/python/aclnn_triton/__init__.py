"""A Triton backend for simulated NPUs. Triton finds it by the entry point in this folder's parent.

Triton's own front end turns a kernel into its intermediate representation (TTIR). ``lowering`` makes code of it, which
``libaclnn_triton.so`` runs as one task of the stream, in device memory, without Python.
"""
