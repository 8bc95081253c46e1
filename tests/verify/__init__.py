"""Compares an installed CANN with the host CANN: `aclnn-torch verify`.

`cases.py` defines the tests of the C interface and `torch_cases.py` those through torch_npu; `worker.py` is the process
in which a case runs, which may die; `run.py` queries the workers and records their answers as they come; `report.py`
compares them; `main.py` is the command's entry point.
"""
