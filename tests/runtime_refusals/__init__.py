"""The calls that the runtime, the descriptors, the profiler and HCCL's management refuse, by subject."""
