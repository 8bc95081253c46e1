// GRUs and their gradients, which use the tensors that training saves. The order of the gates is
// reset, update, candidate.

#include "cann/rows/recurrent/recurrent.h"
#include "cann/rows/recurrent/recurrent_training.h"
#include "cann/rows/row.h"

namespace aclnn_host::recurrent_gru_rows {

namespace {

constexpr int64_t kGruGates = 3;

// The values that a cell computes at every step.
struct GruTrace {
  GruTrace(const at::Tensor& x, const Stack& stack) {
    for (at::Tensor* trace : {&r, &z, &n, &hn, &h}) *trace = empty_trace(x, stack);
  }
  at::Tensor r, z, n, hn, h;
  at::Tensor last_h;
};

GruTrace run_gru_cell(const at::Tensor& x, const Cell& cell, at::Tensor h, const Stack& stack,
                      bool is_backwards) {
  GruTrace trace(x, stack);
  const at::Tensor of_input = at::linear(x, cell.of_input, cell.input_bias);
  for (int64_t count = 0; count < steps_to_compute(x); ++count) {
    const int64_t step = step_index(count, x.size(0), is_backwards);
    const at::Tensor a = of_input.select(0, step);
    const at::Tensor b = at::linear(h, cell.of_hidden, cell.hidden_bias);
    const at::Tensor r = at::sigmoid(part(a, 0, kGruGates) + part(b, 0, kGruGates));
    const at::Tensor z = at::sigmoid(part(a, 1, kGruGates) + part(b, 1, kGruGates));
    const at::Tensor hn = part(b, 2, kGruGates);
    const at::Tensor n = at::tanh(part(a, 2, kGruGates) + r * hn);
    h = (1 - z) * n + z * h;
    trace.r.select(0, step).copy_(r);
    trace.z.select(0, step).copy_(z);
    trace.n.select(0, step).copy_(n);
    trace.hn.select(0, step).copy_(hn);
    trace.h.select(0, step).copy_(h);
  }
  trace.last_h = h;
  return trace;
}

// The saved tensors of one cell.
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
    const int64_t step = step_index(count, steps, !is_backwards);
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

}  // namespace

// dropout is ignored, as published.
ACLNN(GRU, (Floating<In>, input), (Ins, params), (SameDtype<Optional<In>>, hx, "input"),
      (Optional<In>, batchSizes), (bool, hasBias), (int64_t, numLayers),
      (Unused<double>, dropout, "CANN does not implement it"), (bool, train), (bool, bidirection),
      (bool, batchFirst), (SameDtype<Out>, output, "input"), (SameDtype<Out>, hy, "input"),
      (Optional<Outs>, rOut), (Optional<Outs>, zOut), (Optional<Outs>, nOut),
      (Optional<Outs>, hnOut), (Optional<Outs>, hOut)) {
  EXPECT(!batchSizes, "batchSizes is a tensor, expected null: sequences have one length");
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias, bidirection);
  expect_dims("input", input, 3);
  at::Tensor x = steps_first(wide(input), batchFirst);
  const auto parameters = named("params", params);
  const Stack stack = stack_of(x, parameters, numLayers, bidirection);
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, kGruGates, input);
  const at::Tensor h = initial("hx", hx, stack, input);
  std::vector<GruTrace> traces;
  std::vector<at::Tensor> last;
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    std::vector<at::Tensor> outputs;
    for (int64_t cell = layer * stack.directions; cell < (layer + 1) * stack.directions; ++cell) {
      const GruTrace& trace = traces.emplace_back(run_gru_cell(
          x, cells[static_cast<size_t>(cell)], h.select(0, cell), stack, stack.is_backwards(cell)));
      outputs.push_back(trace.h);
      last.push_back(trace.last_h);
    }
    x = side_by_side(outputs);
  }
  output = steps_first(x, batchFirst);
  hy = at::stack(last);
  if (!train) return;
  save(rOut, "rOut", traces, &GruTrace::r, input);
  save(zOut, "zOut", traces, &GruTrace::z, input);
  save(nOut, "nOut", traces, &GruTrace::n, input);
  save(hnOut, "hnOut", traces, &GruTrace::hn, input);
  save(hOut, "hOut", traces, &GruTrace::h, input);
}
ACLNN(GRUBackward, (Floating<In>, input), (Ins, params), (SameDtype<In>, hx, "input"),
      (SameDtype<In>, dy, "input"), (SameDtype<In>, dh, "input"), (SameDtype<Ins>, r, "input"),
      (SameDtype<Ins>, z, "input"), (SameDtype<Ins>, n, "input"), (SameDtype<Ins>, hn, "input"),
      (SameDtype<Ins>, h, "input"), (Optional<In>, batchSizes), (bool, hasBias),
      (int64_t, numLayers), (bool, bidirection), (bool, batchFirst),
      (SameDtype<Out>, dxOut, "input"), (SameDtype<Out>, dhPrevOut, "input"),
      (SameDtype<Outs>, dparamsOut, "input")) {
  EXPECT(!batchSizes || batchSizes->numel() == 0, "batchSizes has ", batchSizes->numel(),
         " elements, expected null or none: sequences have one length");
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias, bidirection);
  expect_parameter_count("dparamsOut", dparamsOut.size(), numLayers.value(), hasBias, bidirection);
  expect_dims("input", input, 3);
  const at::Tensor x = steps_first(wide(input), batchFirst);
  const auto parameters = named("params", params);
  const Stack stack = stack_of(x, parameters, numLayers, bidirection);
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, kGruGates, input);
  expect_shape("dy", dy, {input.size(0), input.size(1), stack.directions * stack.hidden});
  const at::Tensor h0 = states("hx", hx, stack), of_h = states("dh", dh, stack);
  const auto rs = traces("r", r, stack), zs = traces("z", z, stack);
  const auto ns = traces("n", n, stack), hns = traces("hn", hn, stack);
  const auto hs = traces("h", h, stack);
  const StackGradients gradients = stack_gradients(
      x, steps_first(wide(dy), batchFirst), stack, hs,
      [&](size_t cell, const at::Tensor& of_layer, const at::Tensor& of_output) {
        const auto index = static_cast<int64_t>(cell);
        const GruSaved trace{rs[cell], zs[cell], ns[cell], hns[cell], hs[cell]};
        return gru_cell_gradients(of_layer, cells[cell], trace, h0.select(0, index), of_output,
                                  of_h.select(0, index), stack.is_backwards(index));
      });
  dxOut = steps_first(gradients.of_x, batchFirst);
  dhPrevOut = of_states(gradients, &CellGradients::of_h);
  write_parameters(dparamsOut, gradients);
}

}  // namespace aclnn_host::recurrent_gru_rows
