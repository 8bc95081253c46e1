// Gradients of the layers of recurrent.cpp, from what training saves there.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/recurrent/recurrent.h"

namespace aclnn_host::recurrent_gradients_rows {

namespace {

// A list that training saved, a tensor for each cell.
std::vector<at::Tensor> traces(const char* name, const std::vector<at::Tensor>& list,
                               const Stack& stack, const at::Tensor& like) {
  EXPECT(list.size() == static_cast<size_t>(stack.cells()), name, " has ", list.size(),
         " tensors, expected ", stack.cells(), ", one for each direction of each layer");
  std::vector<at::Tensor> wider;
  for (const at::Tensor& tensor : list) {
    expect_dtype(name, tensor, like);
    expect_shape(name, tensor, stack.trace());
    wider.push_back(wide(tensor));
  }
  return wider;
}

at::Tensor states(const char* name, const at::Tensor& tensor, const Stack& stack,
                  const at::Tensor& like) {
  expect_dtype(name, tensor, like);
  expect_shape(name, tensor, stack.states());
  return wide(tensor);
}

// The states before each step, by those after each step and the initial one.
at::Tensor previous(const at::Tensor& after, const at::Tensor& initial, bool is_backwards) {
  const int64_t steps = after.size(0);
  if (steps == 0) return after;
  const at::Tensor first = initial.unsqueeze(0);
  if (is_backwards) return at::cat({after.narrow(0, 1, steps - 1), first});
  return at::cat({first, after.narrow(0, 0, steps - 1)});
}

// The sum over all steps of gradients of gates, each times what its weight was multiplied by.
at::Tensor of_weight(const at::Tensor& of_gates, const at::Tensor& factor) {
  return at::matmul(of_gates.flatten(0, 1).t(), factor.flatten(0, 1));
}
at::Tensor of_bias(const at::Tensor& of_gates) {
  return of_gates.flatten(0, 1).sum(0);
}

// The gradients of one cell.
struct CellGradients {
  at::Tensor of_x;
  at::Tensor of_h;  // of the initial states
  at::Tensor of_c;
  std::vector<at::Tensor> of_parameters;
};

// What one cell of an LSTM saved.
struct LstmSaved {
  at::Tensor i, g, f, o, h, c, tanh_c;
};

CellGradients lstm_cell_gradients(const at::Tensor& x, const Cell& cell, const LstmSaved& trace,
                                  const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& dy,
                                  at::Tensor dh, at::Tensor dc, const Mask& has_step,
                                  bool is_backwards) {
  const at::Tensor previous_h = previous(trace.h, h0, is_backwards);
  const at::Tensor previous_c = previous(trace.c, c0, is_backwards);
  const int64_t steps = x.size(0);
  const at::Tensor of_gates = at::zeros({steps, x.size(1), 4 * h0.size(1)}, x.options());
  for (int64_t n = 0; n < steps_to_compute(x); ++n) {
    const int64_t step = place_of_step(n, steps, !is_backwards);
    const at::Tensor i = trace.i.select(0, step), g = trace.g.select(0, step);
    const at::Tensor f = trace.f.select(0, step), o = trace.o.select(0, step);
    const at::Tensor tanh_c = trace.tanh_c.select(0, step);
    const at::Tensor of_y = dy.select(0, step) + dh;
    const at::Tensor of_c = of_y * o * (1 - tanh_c.square()) + dc;
    at::Tensor made =
        at::cat({of_c * g * i * (1 - i), of_c * previous_c.select(0, step) * f * (1 - f),
                 of_c * i * (1 - g.square()), of_y * tanh_c * o * (1 - o)},
                1);
    at::Tensor new_dc = of_c * f;
    if (has_step) {
      const at::Tensor here = has_step->select(0, step);
      made = at::where(here, made, c10::Scalar(0.0));
      new_dc = at::where(here, new_dc, dc);
      dh = at::where(here, at::matmul(made, cell.of_hidden), dh);
    } else {
      dh = at::matmul(made, cell.of_hidden);
    }
    dc = new_dc;
    of_gates.select(0, step).copy_(made);
  }
  CellGradients gradients{at::matmul(of_gates, cell.of_input), dh, dc, {}};
  gradients.of_parameters = {of_weight(of_gates, x), of_weight(of_gates, previous_h)};
  if (cell.input_bias) {
    gradients.of_parameters.insert(gradients.of_parameters.end(), 2, of_bias(of_gates));
  }
  return gradients;
}

// What one cell of a GRU saved.
struct GruSaved {
  at::Tensor r, z, n, hn, h;
};

CellGradients gru_cell_gradients(const at::Tensor& x, const Cell& cell, const GruSaved& trace,
                                 const at::Tensor& h0, const at::Tensor& dy, at::Tensor dh,
                                 bool is_backwards) {
  const at::Tensor previous_h = previous(trace.h, h0, is_backwards);
  const int64_t steps = x.size(0);
  const at::Tensor of_input = at::zeros({steps, x.size(1), 3 * h0.size(1)}, x.options());
  const at::Tensor of_hidden = at::zeros_like(of_input);
  for (int64_t count = 0; count < steps_to_compute(x); ++count) {
    const int64_t step = place_of_step(count, steps, !is_backwards);
    const at::Tensor r = trace.r.select(0, step), z = trace.z.select(0, step);
    const at::Tensor n = trace.n.select(0, step);
    const at::Tensor of_y = dy.select(0, step) + dh;
    const at::Tensor of_n = of_y * (1 - z) * (1 - n.square());
    const at::Tensor of_r = of_n * trace.hn.select(0, step) * r * (1 - r);
    const at::Tensor of_z = of_y * (previous_h.select(0, step) - n) * z * (1 - z);
    of_input.select(0, step).copy_(at::cat({of_r, of_z, of_n}, 1));
    const at::Tensor made = at::cat({of_r, of_z, of_n * r}, 1);
    of_hidden.select(0, step).copy_(made);
    dh = at::matmul(made, cell.of_hidden) + of_y * z;
  }
  CellGradients gradients{at::matmul(of_input, cell.of_input), dh, {}, {}};
  gradients.of_parameters = {of_weight(of_input, x), of_weight(of_hidden, previous_h)};
  if (cell.input_bias) {
    gradients.of_parameters.push_back(of_bias(of_input));
    gradients.of_parameters.push_back(of_bias(of_hidden));
  }
  return gradients;
}

// The gradients of all cells. cell_gradients(cell, x, dy) makes those of one, by the input of its
// layer and the gradient of its output; h has the outputs of the cells.
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

void write_parameters(std::vector<Output>& dparamsOut, const StackGradients& gradients,
                      const at::Tensor& like) {
  auto out = dparamsOut.begin();
  for (const CellGradients& cell : gradients.cells) {
    for (const at::Tensor& of_parameter : cell.of_parameters) {
      expect_dtype(*out, like);
      *out++ = of_parameter;
    }
  }
}

// The initial states' gradients, one above the other.
at::Tensor of_states(const StackGradients& gradients, at::Tensor CellGradients::* state) {
  std::vector<at::Tensor> list;
  list.reserve(gradients.cells.size());
  for (const CellGradients& cell : gradients.cells) list.push_back(cell.*state);
  return at::stack(list);
}

}  // namespace

// outputMask is not used, as published. With batchSizesOptional, input, dy and dxOut have a row for
// each sequence and step; a step that a sequence has not passes on the gradients of its states.
ACLNN(LstmBackward, (FloatIn, input), (Ins, hx), (Ins, params), (In, dy), (OptionalIn, dh),
      (OptionalIn, dc), (Ins, i), (Ins, g), (Ins, f), (Ins, o), (Ins, h), (Ins, c), (Ins, tanhc),
      (OptionalIn, batchSizesOptional), (bool, hasBias), (int64_t, numLayers), (double, dropout),
      (bool, train), (bool, bidirectional), (bool, batchFirst), (OptionalBools, outputMask),
      (Out, dxOut), (Out, dhPrevOut), (Out, dcPrevOut), (Outs, dparamsOut)) {
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias, bidirectional);
  expect_parameter_count("dparamsOut", dparamsOut.size(), numLayers.value(), hasBias,
                         bidirectional);
  EXPECT(hx.size() == 2, "hx has ", hx.size(), " tensors, expected 2");
  expect_dims("input", input, batchSizesOptional ? 2 : 3);
  at::Tensor x = wide(input);
  if (batchSizesOptional) {
    const int64_t steps = batchSizesOptional->numel();
    EXPECT(steps > 0 && x.size(0) % steps == 0, "input has ", x.size(0), " rows, expected ",
           "a multiple of the ", steps, " steps in batchSizesOptional");
    x = x.reshape({steps, x.size(0) / steps, x.size(1)});
  } else {
    x = steps_first(x, batchFirst);
  }
  const auto parameters = named("params", params);
  const Stack stack{numLayers.value(), bidirectional ? 2 : 1,     x.size(0), x.size(1),
                    x.size(2),         hidden_size(parameters[1])};
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, 4, input);
  expect_dtype("dy", dy, input);
  const int64_t width = stack.directions * stack.hidden;
  std::vector<int64_t> output_shape = input.sizes().vec();
  output_shape.back() = width;
  expect_shape("dy", dy, output_shape);
  const at::Tensor of_y = batchSizesOptional ? wide(dy).reshape({stack.steps, stack.batch, width})
                                             : steps_first(wide(dy), batchFirst);
  const at::Tensor h0 = states("hx", hx[0], stack, input), c0 = states("hx", hx[1], stack, input);
  // torch_npu passes null for the gradient of a state that nothing depends on.
  const auto of_state = [&](const char* name, const std::optional<at::Tensor>& gradient) {
    return gradient ? states(name, *gradient, stack, input)
                    : at::zeros(stack.states(), wide(input).options());
  };
  const at::Tensor of_h = of_state("dh", dh), of_c = of_state("dc", dc);
  const auto is = traces("i", i, stack, input), gs = traces("g", g, stack, input);
  const auto fs = traces("f", f, stack, input), os = traces("o", o, stack, input);
  const auto hs = traces("h", h, stack, input), cs = traces("c", c, stack, input);
  const auto tanhs = traces("tanhc", tanhc, stack, input);
  const Mask has_step = batchSizesOptional
                            ? Mask(active("batchSizesOptional", *batchSizesOptional, stack.batch))
                            : std::nullopt;
  const StackGradients gradients = stack_gradients(
      x, of_y, stack, hs,
      [&](size_t cell, const at::Tensor& of_layer, const at::Tensor& of_output) {
        const auto index = static_cast<int64_t>(cell);
        const LstmSaved trace{is[cell], gs[cell], fs[cell],   os[cell],
                              hs[cell], cs[cell], tanhs[cell]};
        return lstm_cell_gradients(of_layer, cells[cell], trace, h0.select(0, index),
                                   c0.select(0, index), of_output, of_h.select(0, index),
                                   of_c.select(0, index), has_step, stack.is_backwards(index));
      });
  expect_dtype(dxOut, input);
  expect_dtype(dhPrevOut, input);
  expect_dtype(dcPrevOut, input);
  dxOut =
      batchSizesOptional ? gradients.of_x.flatten(0, 1) : steps_first(gradients.of_x, batchFirst);
  dhPrevOut = of_states(gradients, &CellGradients::of_h);
  dcPrevOut = of_states(gradients, &CellGradients::of_c);
  write_parameters(dparamsOut, gradients, input);
}

ACLNN(GRUBackward, (FloatIn, input), (Ins, params), (In, hx), (In, dy), (In, dh), (Ins, r),
      (Ins, z), (Ins, n), (Ins, hn), (Ins, h), (OptionalIn, batchSizes), (bool, hasBias),
      (int64_t, numLayers), (bool, bidirection), (bool, batchFirst), (Out, dxOut), (Out, dhPrevOut),
      (Outs, dparamsOut)) {
  EXPECT(!batchSizes || batchSizes->numel() == 0, "batchSizes has ", batchSizes->numel(),
         " elements, expected null or none: sequences have one length");
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias, bidirection);
  expect_parameter_count("dparamsOut", dparamsOut.size(), numLayers.value(), hasBias, bidirection);
  expect_dims("input", input, 3);
  const at::Tensor x = steps_first(wide(input), batchFirst);
  const auto parameters = named("params", params);
  const Stack stack{numLayers.value(), bidirection ? 2 : 1, x.size(0),
                    x.size(1),         x.size(2),           hidden_size(parameters[1])};
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, 3, input);
  expect_dtype("dy", dy, input);
  expect_shape("dy", dy, {input.size(0), input.size(1), stack.directions * stack.hidden});
  const at::Tensor h0 = states("hx", hx, stack, input), of_h = states("dh", dh, stack, input);
  const auto rs = traces("r", r, stack, input), zs = traces("z", z, stack, input);
  const auto ns = traces("n", n, stack, input), hns = traces("hn", hn, stack, input);
  const auto hs = traces("h", h, stack, input);
  const StackGradients gradients = stack_gradients(
      x, steps_first(wide(dy), batchFirst), stack, hs,
      [&](size_t cell, const at::Tensor& of_layer, const at::Tensor& of_output) {
        const auto index = static_cast<int64_t>(cell);
        const GruSaved trace{rs[cell], zs[cell], ns[cell], hns[cell], hs[cell]};
        return gru_cell_gradients(of_layer, cells[cell], trace, h0.select(0, index), of_output,
                                  of_h.select(0, index), stack.is_backwards(index));
      });
  expect_dtype(dxOut, input);
  expect_dtype(dhPrevOut, input);
  dxOut = steps_first(gradients.of_x, batchFirst);
  dhPrevOut = of_states(gradients, &CellGradients::of_h);
  write_parameters(dparamsOut, gradients, input);
}

// The gates stand as in storage: input, forget, candidate, output. A null gradient is 0.
ACLNN(ThnnFusedLstmCellBackward, (OptionalIn, gradHyOptional), (OptionalIn, gradCOptional),
      (FloatIn, cx), (In, cy), (In, storage), (bool, hasBias), (Out, gradGatesOut),
      (Out, gradCxOut), (Out, gradBiasOut)) {
  expect_dims("cx", cx, 2);
  expect_like("cy", cy, cx);
  expect_dtype("storage", storage, cx);
  expect_shape("storage", storage, {cx.size(0), 4 * cx.size(1)});
  const auto gradient = [&](const char* name, const std::optional<at::Tensor>& tensor) {
    if (!tensor) return at::zeros_like(wide(cx));
    expect_like(name, *tensor, cx);
    return wide(*tensor);
  };
  const at::Tensor of_h = gradient("gradHyOptional", gradHyOptional);
  const at::Tensor gates = wide(storage);
  const at::Tensor i = part(gates, 0, 4), f = part(gates, 1, 4);
  const at::Tensor g = part(gates, 2, 4), o = part(gates, 3, 4);
  const at::Tensor tanh_c = at::tanh(wide(cy));
  const at::Tensor of_c =
      of_h * o * (1 - tanh_c.square()) + gradient("gradCOptional", gradCOptional);
  const at::Tensor of_gates = at::cat({of_c * g * i * (1 - i), of_c * wide(cx) * f * (1 - f),
                                       of_c * i * (1 - g.square()), of_h * tanh_c * o * (1 - o)},
                                      1);
  expect_dtype(gradGatesOut, cx);
  expect_dtype(gradCxOut, cx);
  gradGatesOut = of_gates;
  gradCxOut = of_c * f;
  if (!hasBias) return;
  expect_dtype(gradBiasOut, cx);
  gradBiasOut = of_gates.sum(0);
}

}  // namespace aclnn_host::recurrent_gradients_rows
