// Recurrent layers. The gates of an LSTM stand in the order input, forget, candidate, output; those
// of a GRU in the order reset, update, candidate.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "cann/rows/recurrent/recurrent.h"

namespace aclnn_host::recurrent_recurrent_rows {

namespace {

constexpr int64_t kLstmGates = 4;
constexpr int64_t kGruGates = 3;

// An initial state of every cell, zeros if there is none.
at::Tensor initial(const char* name, const std::optional<at::Tensor>& states, const Stack& stack,
                   const at::Tensor& like) {
  if (!states) return at::zeros(stack.states(), wide(like).options());
  expect_dtype(name, *states, like);
  expect_shape(name, *states, stack.states());
  return wide(*states);
}

// What is new where a sequence has the step, and what was before where it has not.
at::Tensor kept(const Mask& has_step, int64_t step, const at::Tensor& made, const at::Tensor& old) {
  return has_step ? at::where(has_step->select(0, step), made, old) : made;
}

at::Tensor empty_trace(const at::Tensor& x, const Stack& stack) {
  return at::zeros(stack.trace(), x.options());
}

// What a cell computes at every step, and its last state.
struct LstmTrace {
  LstmTrace(const at::Tensor& x, const Stack& stack)
      : y(empty_trace(x, stack)),
        i(empty_trace(x, stack)),
        j(empty_trace(x, stack)),
        f(empty_trace(x, stack)),
        o(empty_trace(x, stack)),
        h(empty_trace(x, stack)),
        c(empty_trace(x, stack)),
        tanh_c(empty_trace(x, stack)) {}
  at::Tensor y, i, j, f, o, h, c, tanh_c;
  at::Tensor last_h, last_c;
};

LstmTrace run_lstm_cell(const at::Tensor& x, const Cell& cell, at::Tensor h, at::Tensor c,
                        const Stack& stack, const Mask& has_step, bool is_backwards) {
  LstmTrace trace(x, stack);
  const at::Tensor of_input = at::linear(x, cell.of_input, cell.input_bias);
  for (int64_t n = 0; n < steps_to_compute(x); ++n) {
    const int64_t step = place_of_step(n, x.size(0), is_backwards);
    const at::Tensor gates =
        of_input.select(0, step) + at::linear(h, cell.of_hidden, cell.hidden_bias);
    const at::Tensor i = at::sigmoid(part(gates, 0, kLstmGates));
    const at::Tensor f = at::sigmoid(part(gates, 1, kLstmGates));
    const at::Tensor j = at::tanh(part(gates, 2, kLstmGates));
    const at::Tensor o = at::sigmoid(part(gates, 3, kLstmGates));
    c = kept(has_step, step, f * c + i * j, c);
    const at::Tensor tanh_c = at::tanh(c);
    const at::Tensor y = o * tanh_c;
    h = kept(has_step, step, y, h);
    const auto save = [&](at::Tensor& all, const at::Tensor& one) {
      all.select(0, step).copy_(one);
    };
    save(trace.y, kept(has_step, step, y, at::zeros({}, y.options())));
    save(trace.i, i);
    save(trace.j, j);
    save(trace.f, f);
    save(trace.o, o);
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

// Fills a list that training saves with what `trace_of` says of each cell.
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

// The steps that stand one after the other in x, each with the sequences that have it.
struct Packed {
  at::Tensor steps;   // [steps, batch, features]
  at::Tensor places;  // of the rows of x among the rows of all steps; undefined in stage 1
};

Packed unpacked(const at::Tensor& x, const at::Tensor& has_step, const Stack& stack) {
  if (!has_values(x)) {
    return {
        at::zeros({std::min<int64_t>(stack.steps, 1), stack.batch, stack.features}, x.options()),
        {}};
  }
  Packed packed;
  packed.places = has_step.flatten().nonzero().squeeze(1);
  EXPECT(packed.places.numel() == x.size(0), "x has ", x.size(0), " rows, expected ",
         packed.places.numel(), ", the sum of batchSizeOptional");
  packed.steps = at::zeros({stack.steps, stack.batch, stack.features}, x.options());
  packed.steps.view({stack.steps * stack.batch, stack.features}).index_copy_(0, packed.places, x);
  return packed;
}

// The parameters of the one layer of aclnnBidirectionLSTM.
std::vector<NamedTensor> directions_of(
    const at::Tensor& wIh, const at::Tensor& wHh,
    const std::vector<std::pair<const char*, std::optional<at::Tensor>>>& others, bool has_bias,
    bool is_bidirectional) {
  std::vector<NamedTensor> parameters = {{"wIh", wIh}, {"wHh", wHh}};
  for (size_t i = 0; i < others.size(); ++i) {
    const bool is_bias = i != 2 && i != 3;
    if ((is_bias && !has_bias) || (i >= 2 && !is_bidirectional)) continue;
    const auto& [name, tensor] = others[i];
    EXPECT(tensor, name, " is null, expected a tensor as ",
           is_bias ? "isbias is true" : "bidirection is true");
    parameters.push_back({name, *tensor});
  }
  return parameters;
}

void expect_one_layer(int64_t numLayers, bool batchFirst) {
  EXPECT(numLayers == 1, "numLayers is ", numLayers, ", expected 1");
  EXPECT(!batchFirst, "batchFirst is true, expected false");
}

// What a GRU computes at every step.
struct GruTrace {
  GruTrace(const at::Tensor& x, const Stack& stack)
      : r(empty_trace(x, stack)),
        z(empty_trace(x, stack)),
        n(empty_trace(x, stack)),
        hn(empty_trace(x, stack)),
        h(empty_trace(x, stack)) {}
  at::Tensor r, z, n, hn, h;
  at::Tensor last_h;
};

GruTrace run_gru_cell(const at::Tensor& x, const Cell& cell, at::Tensor h, const Stack& stack,
                      bool is_backwards) {
  GruTrace trace(x, stack);
  const at::Tensor of_input = at::linear(x, cell.of_input, cell.input_bias);
  for (int64_t count = 0; count < steps_to_compute(x); ++count) {
    const int64_t step = place_of_step(count, x.size(0), is_backwards);
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

}  // namespace

// dropout is not used, as published. With batchSizes the input has a row for each sequence and
// step, whether or not the sequence has the step; the output is 0 where it has not.
ACLNN(LSTM, (FloatIn, input), (Ins, params), (OptionalIns, hx), (OptionalIn, batchSizes),
      (bool, hasBias), (int64_t, numLayers), (double, dropout), (bool, train),
      (bool, bidirectional), (bool, batchFirst), (Out, output), (Out, hy), (Out, cy),
      (OptionalOuts, iOut), (OptionalOuts, jOut), (OptionalOuts, fOut), (OptionalOuts, oOut),
      (OptionalOuts, hOut), (OptionalOuts, cOut), (OptionalOuts, tanhCOut)) {
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias.value(),
                         bidirectional.value());
  EXPECT(hx.empty() || hx.size() == 2, "hx has ", hx.size(), " tensors, expected 2 or none");
  expect_dims("input", input, batchSizes ? 2 : 3);
  at::Tensor x = wide(input);
  if (batchSizes) {
    const int64_t steps = batchSizes->numel();
    EXPECT(steps > 0 && x.size(0) % steps == 0, "input has ", x.size(0), " rows, expected ",
           "a multiple of the ", steps, " steps in batchSizes");
    x = x.reshape({steps, x.size(0) / steps, x.size(1)});
  } else {
    x = steps_first(x, batchFirst.value());
  }
  const auto parameters = named("params", params);
  const Stack stack{numLayers.value(), bidirectional ? 2 : 1,     x.size(0), x.size(1),
                    x.size(2),         hidden_size(parameters[1])};
  const std::vector<Cell> cells = cells_of(parameters, stack, hasBias, kLstmGates, input);
  const auto state = [&](size_t i) {
    return initial("hx", hx.empty() ? std::nullopt : std::optional(hx[i]), stack, input);
  };
  const Mask has_step =
      batchSizes ? Mask(active("batchSizes", *batchSizes, stack.batch)) : std::nullopt;
  const Lstm lstm = run_lstm(x, cells, state(0), state(1), stack, has_step);
  expect_dtype(output, input);
  expect_dtype(hy, input);
  expect_dtype(cy, input);
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

namespace {

// An LSTM of one layer. packed counts only beside sizes.
void run_one_layer(const at::Tensor& x, const at::Tensor& initH, const at::Tensor& initC,
                   const std::vector<NamedTensor>& parameters, const Mask& sizes, bool isbias,
                   bool bidirection, bool packed, Output& yOut, Output& outputHOut,
                   Output& outputCOut) {
  const bool is_packed = packed && sizes;
  expect_dims("x", x, is_packed ? 2 : 3);
  expect_dims("initH", initH, 3);
  const Stack stack{
      1,          bidirection ? 2 : 1,       sizes ? sizes->numel() : x.size(0), initH.size(1),
      x.size(-1), hidden_size(parameters[1])};
  if (!is_packed) expect_shape("x", x, {stack.steps, stack.batch, stack.features});
  const std::vector<Cell> cells = cells_of(parameters, stack, isbias, kLstmGates, x);
  const Mask has_step =
      sizes ? Mask(active("batchSizeOptional", *sizes, stack.batch)) : std::nullopt;
  const Packed rows =
      is_packed ? unpacked(wide(x), *has_step, stack) : Packed{.steps = wide(x), .places = {}};
  const Lstm lstm = run_lstm(rows.steps, cells, initial("initH", initH, stack, x),
                             initial("initC", initC, stack, x), stack, has_step);
  expect_dtype(yOut, x);
  expect_dtype(outputHOut, x);
  expect_dtype(outputCOut, x);
  if (!is_packed) {
    yOut = lstm.y;
  } else if (rows.places.defined()) {
    yOut = lstm.y.flatten(0, 1).index_select(0, rows.places);
  } else {
    yOut = at::zeros({x.size(0), lstm.y.size(-1)}, x.options());
  }
  outputHOut = lstm.last_h;
  outputCOut = lstm.last_c;
}

}  // namespace

ACLNN(BidirectionLSTM, (FloatIn, x), (In, initH), (In, initC), (In, wIh), (In, wHh),
      (OptionalIn, bIhOptional), (OptionalIn, bHhOptional), (OptionalIn, wIhReverseOptional),
      (OptionalIn, wHhReverseOptional), (OptionalIn, bIhReverseOptional),
      (OptionalIn, bHhReverseOptional), (int64_t, numLayers), (bool, isbias), (bool, batchFirst),
      (bool, bidirection), (Out, yOut), (Out, outputHOut), (Out, outputCOut)) {
  expect_one_layer(numLayers.value(), batchFirst);
  const std::vector<NamedTensor> parameters =
      directions_of(wIh, wHh,
                    {{"bIhOptional", bIhOptional},
                     {"bHhOptional", bHhOptional},
                     {"wIhReverseOptional", wIhReverseOptional},
                     {"wHhReverseOptional", wHhReverseOptional},
                     {"bIhReverseOptional", bIhReverseOptional},
                     {"bHhReverseOptional", bHhReverseOptional}},
                    isbias, bidirection);
  run_one_layer(x, initH, initC, parameters, std::nullopt, isbias, bidirection, false, yOut,
                outputHOut, outputCOut);
}
ACLNN(BidirectionLSTMV2, (FloatIn, x), (In, initH), (In, initC), (In, wIh), (In, wHh),
      (OptionalIn, bIhOptional), (OptionalIn, bHhOptional), (OptionalIn, wIhReverseOptional),
      (OptionalIn, wHhReverseOptional), (OptionalIn, bIhReverseOptional),
      (OptionalIn, bHhReverseOptional), (OptionalIn, batchSizeOptional), (int64_t, numLayers),
      (bool, isbias), (bool, batchFirst), (bool, bidirection), (bool, packed), (Out, yOut),
      (Out, outputHOut), (Out, outputCOut)) {
  expect_one_layer(numLayers.value(), batchFirst);
  const std::vector<NamedTensor> parameters =
      directions_of(wIh, wHh,
                    {{"bIhOptional", bIhOptional},
                     {"bHhOptional", bHhOptional},
                     {"wIhReverseOptional", wIhReverseOptional},
                     {"wHhReverseOptional", wHhReverseOptional},
                     {"bIhReverseOptional", bIhReverseOptional},
                     {"bHhReverseOptional", bHhReverseOptional}},
                    isbias, bidirection);
  run_one_layer(x, initH, initC, parameters, batchSizeOptional, isbias, bidirection, packed, yOut,
                outputHOut, outputCOut);
}

// dropout is not used, as published.
ACLNN(GRU, (FloatIn, input), (Ins, params), (OptionalIn, hx), (OptionalIn, batchSizes),
      (bool, hasBias), (int64_t, numLayers), (double, dropout), (bool, train), (bool, bidirection),
      (bool, batchFirst), (Out, output), (Out, hy), (OptionalOuts, rOut), (OptionalOuts, zOut),
      (OptionalOuts, nOut), (OptionalOuts, hnOut), (OptionalOuts, hOut)) {
  EXPECT(!batchSizes, "batchSizes is a tensor, expected null: sequences have one length");
  expect_parameter_count("params", params.size(), numLayers.value(), hasBias, bidirection);
  expect_dims("input", input, 3);
  at::Tensor x = steps_first(wide(input), batchFirst);
  const auto parameters = named("params", params);
  const Stack stack{numLayers.value(), bidirection ? 2 : 1, x.size(0),
                    x.size(1),         x.size(2),           hidden_size(parameters[1])};
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
  expect_dtype(output, input);
  expect_dtype(hy, input);
  output = steps_first(x, batchFirst);
  hy = at::stack(last);
  if (!train) return;
  save(rOut, "rOut", traces, &GruTrace::r, input);
  save(zOut, "zOut", traces, &GruTrace::z, input);
  save(nOut, "nOut", traces, &GruTrace::n, input);
  save(hnOut, "hnOut", traces, &GruTrace::hn, input);
  save(hOut, "hOut", traces, &GruTrace::h, input);
}

// What is left of an LSTM cell after its matrix products.
ACLNN(ThnnFusedLstmCell, (FloatIn, inputGates), (In, hiddenGates), (In, cx),
      (OptionalIn, inputBiasOptional), (OptionalIn, hiddenBiasOptional), (Out, hyOut), (Out, cyOut),
      (Out, storageOut)) {
  expect_dims("cx", cx, 2);
  expect_dtype("cx", cx, inputGates);
  const int64_t columns = kLstmGates * cx.size(1);
  expect_shape("inputGates", inputGates, {cx.size(0), columns});
  expect_like("hiddenGates", hiddenGates, inputGates);
  EXPECT(inputBiasOptional.has_value() == hiddenBiasOptional.has_value(),
         inputBiasOptional ? "hiddenBiasOptional" : "inputBiasOptional",
         " is null and the other bias is not, expected both or none");
  at::Tensor gates = wide(inputGates) + wide(hiddenGates);
  if (inputBiasOptional) {
    for (const auto& [name, bias] : {std::pair{"inputBiasOptional", inputBiasOptional},
                                     std::pair{"hiddenBiasOptional", hiddenBiasOptional}}) {
      expect_dtype(name, *bias, inputGates);
      expect_shape(name, *bias, {columns});
    }
    gates = gates + (wide(*inputBiasOptional) + wide(*hiddenBiasOptional));
  }
  const at::Tensor i = at::sigmoid(part(gates, 0, kLstmGates));
  const at::Tensor f = at::sigmoid(part(gates, 1, kLstmGates));
  const at::Tensor g = at::tanh(part(gates, 2, kLstmGates));
  const at::Tensor o = at::sigmoid(part(gates, 3, kLstmGates));
  const at::Tensor c = f * wide(cx) + i * g;
  expect_dtype(hyOut, inputGates);
  expect_dtype(cyOut, inputGates);
  expect_dtype(storageOut, inputGates);
  hyOut = o * at::tanh(c);
  cyOut = c;
  storageOut = at::cat({i, f, g, o}, 1);
}

}  // namespace aclnn_host::recurrent_recurrent_rows
