"""Compares an installed CANN with the host CANN: `aclnn-torch verify`.

`cases.py` has what is tried of the C interface and `torch_cases.py` what is tried through torch_npu; `worker.py` is the
process in which a case runs, which may die; `run.py` asks the workers and writes down their answers as they come;
`report.py` compares them; `main.py` is what the command calls.
"""
