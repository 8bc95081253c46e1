"""What the formulas of several files use.

- types: rounding to a type, numbers packed in others, and what an output holds that is not written
- functions: sigmoid and the like
- numbers: tensors of different numbers for calls
- elementwise: calls of elementwise functions and their in-place forms
- attention: arguments by name, layouts, and the attention of training; attention_inference: that of inference
- losses: their reductions, and the gradients of these
- nsa: native sparse attention
- experts: rows of a mixture of experts, and grouped matrix products
- quantized: calls and parts of quantised functions; quantized_matmul: products in CANN's modes
- mx: scales of blocks
- recurrent: layers and directions of recurrent networks
"""
