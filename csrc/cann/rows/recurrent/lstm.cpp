// LSTMs and their gradients, which use the tensors that training saves. The order of the gates is
// input, forget, candidate, output.

#include "cann/rows/recurrent/recurrent.h"
#include "cann/rows/recurrent/recurrent_training.h"
#include "cann/rows/row.h"

namespace aclnn_host::recurrent_lstm_rows {

namespace {

constexpr int64_t kLstmGates = 4;

// The new values of sequences that have this step, and the old ones of the others.
at::Tensor kept(const Mask& has_step, int64_t step, const at::Tensor& made, const at::Tensor& old) {
  return has_step ? at::where(has_step->select(0, step), made, old) : made;
}

// The gates of a step, from the sums of their products.
struct LstmGates {
  explicit LstmGates(const at::Tensor& sums)
      : i(at::sigmoid(part(sums, 0, kLstmGates))),
        f(at::sigmoid(part(sums, 1, kLstmGates))),
        g(at::tanh(part(sums, 2, kLstmGates))),
        o(at::sigmoid(part(sums, 3, kLstmGates))) {}
  at::Tensor i, f, g, o;
};

// The values that a cell computes at every step, and its last state.
struct LstmTrace {
  LstmTrace(const at::Tensor& x, const Stack& stack) {
    for (at::Tensor* trace : {&y, &i, &j, &f, &o, &h, &c, &tanh_c}) *trace = empty_trace(x, stack);
  }
  at::Tensor y, i, j, f, o, h, c, tanh_c;
  at::Tensor last_h, last_c;
};

LstmTrace run_lstm_cell(const at::Tensor& x, const Cell& cell, at::Tensor h, at::Tensor c,
                        const Stack& stack, const Mask& has_step, bool is_backwards) {
  LstmTrace trace(x, stack);
  const at::Tensor of_input = at::linear(x, cell.of_input, cell.input_bias);
  for (int64_t n = 0; n < steps_to_compute(x); ++n) {
    const int64_t step = step_index(n, x.size(0), is_backwards);
    const LstmGates gates(of_input.select(0, step) +
                          at::linear(h, cell.of_hidden, cell.hidden_bias));
    c = kept(has_step, step, gates.f * c + gates.i * gates.g, c);
    const at::Tensor tanh_c = at::tanh(c);
    const at::Tensor y = gates.o * tanh_c;
    h = kept(has_step, step, y, h);
    const auto save = [&](at::Tensor& all, const at::Tensor& one) {
      all.select(0, step).copy_(one);
    };
    save(trace.y, kept(has_step, step, y, at::zeros({}, y.options())));
    save(trace.i, gates.i);
    save(trace.j, gates.g);
    save(trace.f, gates.f);
    save(trace.o, gates.o);
    save(trace.h, h);
    save(trace.c, c);
    save(trace.tanh_c, tanh_c);
  }
  trace.last_h = h;
  trace.last_c = c;
  return trace;
}

struct Lstm {
  at::Tensor y;
  std::vector<LstmTrace> cells;
  at::Tensor last_h, last_c;
};

Lstm run_lstm(at::Tensor x, const std::vector<Cell>& cells, const at::Tensor& h,
              const at::Tensor& c, const Stack& stack, const Mask& has_step) {
  Lstm lstm;
  std::vector<at::Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    std::vector<at::Tensor> outputs;
    for (int64_t cell = layer * stack.directions; cell < (layer + 1) * stack.directions; ++cell) {
      const LstmTrace& trace = lstm.cells.emplace_back(
          run_lstm_cell(x, cells[static_cast<size_t>(cell)], h.select(0, cell), c.select(0, cell),
                        stack, has_step, stack.is_backwards(cell)));
      outputs.push_back(trace.y);
      last_h.push_back(trace.last_h);
      last_c.push_back(trace.last_c);
    }
    x = side_by_side(outputs);
  }
  lstm.y = x;
  lstm.last_h = at::stack(last_h);
  lstm.last_c = at::stack(last_c);
  return lstm;
}

// Packed steps, expanded to all steps of all sequences.
struct Packed {
  at::Tensor steps;      // [steps, batch, features]
  at::Tensor positions;  // of the rows of x among the rows of all steps; undefined in stage 1
};

Packed unpacked(const at::Tensor& x, const at::Tensor& has_step, const Stack& stack) {
  if (!has_values(x)) {
    const int64_t steps = std::min<int64_t>(stack.steps, 1);
    return {at::zeros({steps, stack.batch, stack.features}, x.options()), {}};
  }
  Packed packed;
  packed.positions = has_step.flatten().nonzero().squeeze(1);
  EXPECT(packed.positions.numel() == x.size(0), "x has ", x.size(0), " rows, expected ",
         packed.positions.numel(), ", the sum of batchSizeOptional");
  packed.steps = at::zeros({stack.steps, stack.batch, stack.features}, x.options());
  packed.steps.flatten(0, 1).index_copy_(0, packed.positions, x);
  return packed;
}

// The parameters of the one layer of aclnnBidirectionLSTM.
template <class Version>
std::vector<NamedTensor> directions_of(const Version& row) {
  std::vector<NamedTensor> parameters = {{"wIh", row.wIh}, {"wHh", row.wHh}};
  const auto add = [&](const char* name, const std::optional<at::Tensor>& tensor,
                       const char* reason) {
    EXPECT(tensor, name, " is null, expected a tensor as ", reason, " is true");
    parameters.push_back({name, *tensor});
  };
  if (row.isbias) {
    add("bIhOptional", row.bIhOptional, "isbias");
    add("bHhOptional", row.bHhOptional, "isbias");
  }
  if (!row.bidirection) return parameters;
  add("wIhReverseOptional", row.wIhReverseOptional, "bidirection");
  add("wHhReverseOptional", row.wHhReverseOptional, "bidirection");
  if (row.isbias) {
    add("bIhReverseOptional", row.bIhReverseOptional, "isbias");
    add("bHhReverseOptional", row.bHhReverseOptional, "isbias");
  }
  return parameters;
}

// An LSTM of one layer.
template <class Version>
void run_one_layer(Version& row) {
  expect_one_of("numLayers", row.numLayers, {1});
  EXPECT(!row.batchFirst, "batchFirst is true, expected false");
  const std::vector<NamedTensor> parameters = directions_of(row);
  std::optional<at::Tensor> sizes;
  bool is_packed = false;
  if constexpr (requires { row.packed; }) {
    sizes = row.batchSizeOptional;
    is_packed = row.packed && sizes;
  }
  const at::Tensor& x = row.x;
  expect_dims("x", x, is_packed ? 2 : 3);
  expect_dims("initH", row.initH, 3);
  const Stack stack{
      1,          row.bidirection ? 2 : 1,   sizes ? sizes->numel() : x.size(0), row.initH.size(1),
      x.size(-1), hidden_size(parameters[1])};
  if (!is_packed) expect_shape("x", x, {stack.steps, stack.batch, stack.features});
  const std::vector<Cell> cells = cells_of(parameters, stack, row.isbias, kLstmGates, x);
  const Mask has_step = has_steps("batchSizeOptional", sizes, stack.batch);
  const Packed rows =
      is_packed ? unpacked(wide(x), *has_step, stack) : Packed{.steps = wide(x), .positions = {}};
  const Lstm lstm = run_lstm(rows.steps, cells, initial("initH", row.initH, stack, x),
                             initial("initC", row.initC, stack, x), stack, has_step);
  if (!is_packed) {
    row.yOut = lstm.y;
  } else if (rows.positions.defined()) {
    row.yOut = lstm.y.flatten(0, 1).index_select(0, rows.positions);
  } else {
    row.yOut = at::zeros({x.size(0), lstm.y.size(-1)}, x.options());
  }
  row.outputHOut = lstm.last_h;
  row.outputCOut = lstm.last_c;
}

// The saved tensors of one cell.
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
    const int64_t step = step_index(n, steps, !is_backwards);
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

}  // namespace

// dropout is ignored, as published. With batchSizes the input has a row for each sequence and step,
// including steps that a sequence does not have; the output of these is 0.
// Behaviour of LSTM, LstmBackward, GRU*: Gates are in the order of torch. The gradient is the true
// one; the document of aclnnLstmBackward leaves terms out. Padded steps of batchSizes are 0.
ACLNN(LSTM, (Floating<In>, input), (Ins, params), (SameDtype<Optional<Ins>>, hx, "input"),
      (Optional<In>, batchSizes), (bool, hasBias), (int64_t, numLayers),
      (Unused<double>, dropout, "CANN does not implement it"), (bool, train), (bool, bidirectional),
      (bool, batchFirst), (SameDtype<Out>, output, "input"), (SameDtype<Out>, hy, "input"),
      (SameDtype<Out>, cy, "input"), (Optional<Outs>, iOut), (Optional<Outs>, jOut),
      (Optional<Outs>, fOut), (Optional<Outs>, oOut), (Optional<Outs>, hOut),
      (Optional<Outs>, cOut), (Optional<Outs>, tanhCOut)) {
  expect_parameter_count("params", params.size(), numLayers, hasBias, bidirectional);
  EXPECT(hx.empty() || hx.size() == 2, "hx has ", hx.size(), " tensors, expected 2 or none");
  const at::Tensor x = by_step(input, "batchSizes", batchSizes, batchFirst);
  const auto parameters = named("params", params);
  const Stack stack = stack_of(x, parameters, numLayers, bidirectional);
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, kLstmGates, input);
  const auto state = [&](size_t i) {
    return initial("hx", hx.empty() ? std::nullopt : std::optional(hx[i]), stack, input);
  };
  const Mask has_step = has_steps("batchSizes", batchSizes, stack.batch);
  const Lstm lstm = run_lstm(x, cells, state(0), state(1), stack, has_step);
  output = steps_first(lstm.y, batchFirst && !batchSizes);
  hy = lstm.last_h;
  cy = lstm.last_c;
  if (!train) return;
  save(iOut, "iOut", lstm.cells, &LstmTrace::i, input);
  save(jOut, "jOut", lstm.cells, &LstmTrace::j, input);
  save(fOut, "fOut", lstm.cells, &LstmTrace::f, input);
  save(oOut, "oOut", lstm.cells, &LstmTrace::o, input);
  save(hOut, "hOut", lstm.cells, &LstmTrace::h, input);
  save(cOut, "cOut", lstm.cells, &LstmTrace::c, input);
  save(tanhCOut, "tanhCOut", lstm.cells, &LstmTrace::tanh_c, input);
}

ACLNN_STRUCT(BidirectionLSTM, (Floating<In>, x), (SameDtype<In>, initH, "x"),
             (SameDtype<In>, initC, "x"), (In, wIh), (In, wHh), (Optional<In>, bIhOptional),
             (Optional<In>, bHhOptional), (Optional<In>, wIhReverseOptional),
             (Optional<In>, wHhReverseOptional), (Optional<In>, bIhReverseOptional),
             (Optional<In>, bHhReverseOptional), (int64_t, numLayers), (bool, isbias),
             (bool, batchFirst), (bool, bidirection), (SameDtype<Out>, yOut, "x"),
             (SameDtype<Out>, outputHOut, "x"), (SameDtype<Out>, outputCOut, "x")) {
  run_one_layer(*this);
}
ACLNN_STRUCT(BidirectionLSTMV2, (Floating<In>, x), (SameDtype<In>, initH, "x"),
             (SameDtype<In>, initC, "x"), (In, wIh), (In, wHh), (Optional<In>, bIhOptional),
             (Optional<In>, bHhOptional), (Optional<In>, wIhReverseOptional),
             (Optional<In>, wHhReverseOptional), (Optional<In>, bIhReverseOptional),
             (Optional<In>, bHhReverseOptional), (Optional<In>, batchSizeOptional),
             (int64_t, numLayers), (bool, isbias), (bool, batchFirst), (bool, bidirection),
             (bool, packed), (SameDtype<Out>, yOut, "x"), (SameDtype<Out>, outputHOut, "x"),
             (SameDtype<Out>, outputCOut, "x")) {
  run_one_layer(*this);
}

// outputMask is ignored, as published. With batchSizesOptional, input, dy and dxOut have a row for
// each sequence and step; a step that a sequence does not have passes on the gradients of its
// states.
ACLNN(LstmBackward, (Floating<In>, input), (SameDtype<Ins>, hx, "input"), (Ins, params),
      (SameDtype<In>, dy, "input"), (SameDtype<Optional<In>>, dh, "input"),
      (SameDtype<Optional<In>>, dc, "input"), (SameDtype<Ins>, i, "input"),
      (SameDtype<Ins>, g, "input"), (SameDtype<Ins>, f, "input"), (SameDtype<Ins>, o, "input"),
      (SameDtype<Ins>, h, "input"), (SameDtype<Ins>, c, "input"), (SameDtype<Ins>, tanhc, "input"),
      (Optional<In>, batchSizesOptional), (bool, hasBias), (int64_t, numLayers),
      (Unused<double>, dropout, "CANN does not use it"),
      (Unused<bool>, train, "CANN does not use it"), (bool, bidirectional), (bool, batchFirst),
      (Unused<Optional<Bools>>, outputMask, "CANN does not use it"),
      (SameDtype<Out>, dxOut, "input"), (SameDtype<Out>, dhPrevOut, "input"),
      (SameDtype<Out>, dcPrevOut, "input"), (SameDtype<Outs>, dparamsOut, "input")) {
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias, bidirectional);
  expect_parameter_count("dparamsOut", dparamsOut.size(), numLayers.value(), hasBias,
                         bidirectional);
  EXPECT(hx.size() == 2, "hx has ", hx.size(), " tensors, expected 2");
  const at::Tensor x = by_step(input, "batchSizesOptional", batchSizesOptional, batchFirst);
  const auto parameters = named("params", params);
  const Stack stack = stack_of(x, parameters, numLayers, bidirectional);
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, kLstmGates, input);
  const int64_t width = stack.directions * stack.hidden;
  std::vector<int64_t> output_shape = input.sizes().vec();
  output_shape.back() = width;
  expect_shape("dy", dy, output_shape);
  const at::Tensor of_y = batchSizesOptional ? wide(dy).reshape({stack.steps, stack.batch, width})
                                             : steps_first(wide(dy), batchFirst);
  const at::Tensor h0 = states("hx", hx[0], stack), c0 = states("hx", hx[1], stack);
  // torch_npu passes null for the gradient of a state that is not used.
  const auto of_state = [&](const char* name, const std::optional<at::Tensor>& gradient) {
    return gradient ? states(name, *gradient, stack)
                    : at::zeros(stack.states(), wide(input).options());
  };
  const at::Tensor of_h = of_state("dh", dh), of_c = of_state("dc", dc);
  const auto is = traces("i", i, stack), gs = traces("g", g, stack);
  const auto fs = traces("f", f, stack), os = traces("o", o, stack);
  const auto hs = traces("h", h, stack), cs = traces("c", c, stack);
  const auto tanhs = traces("tanhc", tanhc, stack);
  const Mask has_step = has_steps("batchSizesOptional", batchSizesOptional, stack.batch);
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
  dxOut =
      batchSizesOptional ? gradients.of_x.flatten(0, 1) : steps_first(gradients.of_x, batchFirst);
  dhPrevOut = of_states(gradients, &CellGradients::of_h);
  dcPrevOut = of_states(gradients, &CellGradients::of_c);
  write_parameters(dparamsOut, gradients);
}

// The part of an LSTM cell after its matrix products.
// Behaviour of ThnnFusedLstmCell: The gates are input, forget, candidate and output, in the inputs
// and in storageOut, as in CANN's kernel and the document of the gradient. Its own document has
// input, candidate, forget and output.
ACLNN(ThnnFusedLstmCell, (Floating<In>, inputGates), (Like<In>, hiddenGates, "inputGates"),
      (SameDtype<In>, cx, "inputGates"), (SameDtype<Optional<In>>, inputBiasOptional, "inputGates"),
      (SameDtype<Optional<In>>, hiddenBiasOptional, "inputGates"),
      (SameDtype<Out>, hyOut, "inputGates"), (SameDtype<Out>, cyOut, "inputGates"),
      (SameDtype<Out>, storageOut, "inputGates")) {
  expect_dims("cx", cx, 2);
  const int64_t columns = kLstmGates * cx.size(1);
  expect_shape("inputGates", inputGates, {cx.size(0), columns});
  expect_both_or_none("inputBiasOptional", inputBiasOptional.has_value(), "hiddenBiasOptional",
                      hiddenBiasOptional.has_value());
  at::Tensor sums = wide(inputGates) + wide(hiddenGates);
  if (inputBiasOptional) {
    expect_shape("inputBiasOptional", *inputBiasOptional, {columns});
    expect_shape("hiddenBiasOptional", *hiddenBiasOptional, {columns});
    sums = sums + (wide(*inputBiasOptional) + wide(*hiddenBiasOptional));
  }
  const LstmGates gates(sums);
  const at::Tensor c = gates.f * wide(cx) + gates.i * gates.g;
  hyOut = gates.o * at::tanh(c);
  cyOut = c;
  storageOut = at::cat({gates.i, gates.f, gates.g, gates.o}, 1);
}
// The order of the gates in storage is input, forget, candidate, output. A null gradient is 0.
ACLNN(ThnnFusedLstmCellBackward, (Like<Optional<In>>, gradHyOptional, "cx"),
      (Like<Optional<In>>, gradCOptional, "cx"), (Floating<In>, cx), (Like<In>, cy, "cx"),
      (SameDtype<In>, storage, "cx"), (bool, hasBias), (SameDtype<Out>, gradGatesOut, "cx"),
      (SameDtype<Out>, gradCxOut, "cx"), (Out, gradBiasOut)) {
  expect_dims("cx", cx, 2);
  expect_shape("storage", storage, {cx.size(0), kLstmGates * cx.size(1)});
  const auto gradient = [&](const std::optional<at::Tensor>& tensor) {
    return tensor ? wide(*tensor) : at::zeros_like(wide(cx));
  };
  const at::Tensor of_h = gradient(gradHyOptional);
  const at::Tensor gates = wide(storage);
  const at::Tensor i = part(gates, 0, 4), f = part(gates, 1, 4);
  const at::Tensor g = part(gates, 2, 4), o = part(gates, 3, 4);
  const at::Tensor tanh_c = at::tanh(wide(cy));
  const at::Tensor of_c = of_h * o * (1 - tanh_c.square()) + gradient(gradCOptional);
  const at::Tensor of_gates = at::cat({of_c * g * i * (1 - i), of_c * wide(cx) * f * (1 - f),
                                       of_c * i * (1 - g.square()), of_h * tanh_c * o * (1 - o)},
                                      1);
  gradGatesOut = of_gates;
  gradCxOut = of_c * f;
  if (!hasBias) return;
  expect_dtype(gradBiasOut, cx);
  gradBiasOut = of_gates.sum(0);
}

}  // namespace aclnn_host::recurrent_lstm_rows
