#pragma once

#include "cann/rows/recurrent/recurrent.h"
#include "cann/rows/row.h"

// Shared by LSTMs and GRUs: initial states, the tensors that training saves, and gradients.
namespace aclnn_host {

// The initial states of every cell; zeros if they are absent.
inline at::Tensor initial(const char* name, const std::optional<at::Tensor>& states,
                          const Stack& stack, const at::Tensor& like) {
  if (!states) return at::zeros(stack.states(), wide(like).options());
  expect_shape(name, *states, stack.states());
  return wide(*states);
}

inline at::Tensor empty_trace(const at::Tensor& x, const Stack& stack) {
  return at::zeros(stack.trace(), x.options());
}

// Fills a list that training saves with the tensor that `trace_of` returns for each cell.
template <class Trace>
void save(std::vector<Output>& out, const char* name, const std::vector<Trace>& cells,
          at::Tensor Trace::* trace, const at::Tensor& like) {
  EXPECT(out.size() == cells.size(), name, " has ", out.size(), " tensors, expected ", cells.size(),
         ", one for each direction of each layer, as train is true");
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    expect_dtype(out[cell], like);
    out[cell] = cells[cell].*trace;
  }
}

// A list that training saved, with a tensor for each cell.
inline std::vector<at::Tensor> traces(const char* name, const std::vector<at::Tensor>& list,
                                      const Stack& stack) {
  EXPECT(list.size() == static_cast<size_t>(stack.cells()), name, " has ", list.size(),
         " tensors, expected ", stack.cells(), ", one for each direction of each layer");
  std::vector<at::Tensor> wider;
  for (const at::Tensor& tensor : list) {
    expect_shape(name, tensor, stack.trace());
    wider.push_back(wide(tensor));
  }
  return wider;
}

inline at::Tensor states(const char* name, const at::Tensor& tensor, const Stack& stack) {
  expect_shape(name, tensor, stack.states());
  return wide(tensor);
}

// The states before each step, from the states after each step and the initial one.
inline at::Tensor previous(const at::Tensor& after, const at::Tensor& initial, bool is_backwards) {
  const int64_t steps = after.size(0);
  if (steps == 0) return after;
  const at::Tensor first = initial.unsqueeze(0);
  if (is_backwards) return at::cat({after.narrow(0, 1, steps - 1), first});
  return at::cat({first, after.narrow(0, 0, steps - 1)});
}

// The gradient of a weight: the sum over all steps of the gates' gradients times the weight's
// factor.
inline at::Tensor of_weight(const at::Tensor& of_gates, const at::Tensor& factor) {
  return at::matmul(of_gates.flatten(0, 1).t(), factor.flatten(0, 1));
}
inline at::Tensor of_bias(const at::Tensor& of_gates) {
  return of_gates.flatten(0, 1).sum(0);
}

// The gradients of one cell.
struct CellGradients {
  at::Tensor of_x;
  at::Tensor of_h;  // of the initial states
  at::Tensor of_c;
  std::vector<at::Tensor> of_parameters;
};

// The gradients of all cells. cell_gradients(cell, x, dy) computes those of one cell from the input
// of its layer and the gradient of its output; h has the outputs of the cells.
struct StackGradients {
  at::Tensor of_x;
  std::vector<CellGradients> cells;
};
template <class Function>
StackGradients stack_gradients(const at::Tensor& x, at::Tensor dy, const Stack& stack,
                               const std::vector<at::Tensor>& h, Function cell_gradients) {
  StackGradients gradients;
  gradients.cells.resize(static_cast<size_t>(stack.cells()));
  for (int64_t layer = stack.layers - 1; layer >= 0; --layer) {
    const int64_t first = layer * stack.directions;
    const auto below = h.begin() + (first - stack.directions);
    const at::Tensor input = layer == 0 ? x : side_by_side({below, below + stack.directions});
    at::Tensor of_input;
    for (int64_t direction = 0; direction < stack.directions; ++direction) {
      const auto cell = static_cast<size_t>(first + direction);
      gradients.cells[cell] = cell_gradients(cell, input, part(dy, direction, stack.directions));
      const at::Tensor& made = gradients.cells[cell].of_x;
      of_input = of_input.defined() ? of_input + made : made;
    }
    dy = of_input;
  }
  gradients.of_x = dy;
  return gradients;
}

inline void write_parameters(std::vector<Output>& dparamsOut, const StackGradients& gradients) {
  auto out = dparamsOut.begin();
  for (const CellGradients& cell : gradients.cells) {
    for (const at::Tensor& of_parameter : cell.of_parameters) *out++ = of_parameter;
  }
}

// The gradients of the initial states, stacked.
inline at::Tensor of_states(const StackGradients& gradients, at::Tensor CellGradients::* state) {
  std::vector<at::Tensor> list;
  list.reserve(gradients.cells.size());
  for (const CellGradients& cell : gradients.cells) list.push_back(cell.*state);
  return at::stack(list);
}

}  // namespace aclnn_host
