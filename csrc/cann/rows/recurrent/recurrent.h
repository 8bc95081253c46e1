#pragma once

#include "cann/rows/row.h"

// Shared by recurrent layers and their gradients. Sequences are [steps, batch, features] here.
namespace aclnn_host {

// The sizes of stacked layers. A layer has one cell for each direction; the cells are numbered
// layer by layer.
struct Stack {
  int64_t layers;
  int64_t directions;
  int64_t steps;
  int64_t batch;
  int64_t features;  // of the input of the first layer
  int64_t hidden;

  int64_t cells() const { return layers * directions; }
  bool is_backwards(int64_t cell) const { return cell % directions == 1; }
  int64_t features_of(int64_t cell) const {
    return cell < directions ? features : directions * hidden;
  }
  std::vector<int64_t> states() const { return {cells(), batch, hidden}; }
  std::vector<int64_t> trace() const { return {steps, batch, hidden}; }
};

// The parameters of a cell.
struct Cell {
  at::Tensor of_input;
  at::Tensor of_hidden;
  std::optional<at::Tensor> input_bias;
  std::optional<at::Tensor> hidden_bias;
};

// [steps, batch, 1]: true if a sequence has this step; absent if all sequences have all steps.
using Mask = std::optional<at::Tensor>;

struct NamedTensor {
  const char* name;
  at::Tensor tensor;
};

inline std::vector<NamedTensor> named(const char* name, const std::vector<at::Tensor>& tensors) {
  std::vector<NamedTensor> list;
  list.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) list.push_back({name, tensor});
  return list;
}

// Refuses a list without exactly the parameters of every cell: the weights of the input and of the
// hidden state, then both biases if there are biases.
inline void expect_parameter_count(const char* name, size_t count, int64_t layers, bool has_bias,
                                   bool is_bidirectional) {
  expect_at_least("numLayers", layers, 1);
  const size_t of_layer = (has_bias ? 4 : 2) * (is_bidirectional ? 2 : 1);
  EXPECT(count % of_layer == 0 && count / of_layer == static_cast<size_t>(layers), name, " has ",
         count, " tensors, expected ", of_layer, " for each of ", layers, " layers");
}

// The cells of a list of this length, each with this number of gates.
inline std::vector<Cell> cells_of(const std::vector<NamedTensor>& parameters, const Stack& stack,
                                  bool has_bias, int64_t gates, const at::Tensor& like) {
  std::vector<Cell> cells;
  auto next = parameters.begin();
  const auto take = [&](at::IntArrayRef shape) {
    expect_dtype(next->name, next->tensor, like);
    expect_shape(next->name, next->tensor, shape);
    return wide((next++)->tensor);
  };
  const int64_t rows = gates * stack.hidden;
  for (int64_t cell = 0; cell < stack.cells(); ++cell) {
    Cell& made = cells.emplace_back();
    made.of_input = take({rows, stack.features_of(cell)});
    made.of_hidden = take({rows, stack.hidden});
    if (!has_bias) continue;
    made.input_bias = take({rows});
    made.hidden_bias = take({rows});
  }
  return cells;
}

// The hidden size, from the weight of the hidden state of the first cell.
inline int64_t hidden_size(const NamedTensor& of_hidden) {
  expect_dims(of_hidden.name, of_hidden.tensor, 2);
  return of_hidden.tensor.size(1);
}

// The stack of layers of a list of parameters, for an input of [steps, batch, features].
inline Stack stack_of(const at::Tensor& x, const std::vector<NamedTensor>& parameters,
                      int64_t layers, bool is_bidirectional) {
  return {layers,    is_bidirectional ? 2 : 1,  x.size(0), x.size(1),
          x.size(2), hidden_size(parameters[1])};
}

// A sequence with the steps as first dimension.
inline at::Tensor steps_first(const at::Tensor& sequence, bool is_batch_first) {
  return is_batch_first ? sequence.transpose(0, 1) : sequence;
}

// The input of a layer in FLOAT as [steps, batch, features]. With the numbers of sequences that
// have each step, it has a row for each sequence and step.
inline at::Tensor by_step(const at::Tensor& input, const char* name,
                          const std::optional<at::Tensor>& batch_sizes, bool is_batch_first) {
  expect_dims("input", input, batch_sizes ? 2 : 3);
  if (!batch_sizes) return steps_first(wide(input), is_batch_first);
  const int64_t steps = batch_sizes->numel(), rows = input.size(0);
  EXPECT(steps > 0 && rows % steps == 0, "input has ", rows, " rows, expected a multiple of the ",
         steps, " steps in ", name);
  return wide(input).reshape({steps, rows / steps, input.size(1)});
}

// The number of steps to compute; one in stage 1, where all steps have the same shapes and dtypes.
inline int64_t steps_to_compute(const at::Tensor& sequence) {
  return has_values(sequence) ? sequence.size(0) : std::min<int64_t>(sequence.size(0), 1);
}

// The position of the n-th computed step in a sequence.
inline int64_t step_index(int64_t n, int64_t steps, bool is_backwards) {
  return is_backwards ? steps - 1 - n : n;
}

// The mask of steps, from the number of sequences that have each step.
inline Mask has_steps(const char* name, const std::optional<at::Tensor>& batch_sizes,
                      int64_t batch) {
  if (!batch_sizes) return std::nullopt;
  expect_dtype(name, *batch_sizes, {at::kLong, at::kInt});
  expect_dims(name, *batch_sizes, 1);
  if (has_values(*batch_sizes)) check_bounds(name, *batch_sizes, batch + 1);
  return (batch_sizes->unsqueeze(1) > at::arange(batch, batch_sizes->options())).unsqueeze(2);
}

// One of `count` equal parts of the last dimension.
inline at::Tensor part(const at::Tensor& tensor, int64_t index, int64_t count) {
  const int64_t size = tensor.size(-1) / count;
  return tensor.narrow(-1, index * size, size);
}

// The outputs of the cells of a layer, concatenated.
inline at::Tensor side_by_side(const std::vector<at::Tensor>& outputs) {
  return outputs.size() == 1 ? outputs[0] : at::cat(at::TensorList(outputs), -1);
}

}  // namespace aclnn_host
