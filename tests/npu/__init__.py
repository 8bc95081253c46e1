"""Tests that run under the real torch_npu on simulated NPUs; tests/test_npu.py starts them."""
