// Recurrent layers of one direction and their gradients. Sequences are (T, B, features). The gates
// are parts of the last dimension, in the order i, f, j, o for an LSTM and r, z, h for a GRU.

#include "cann/rows/recurrent/recurrent.h"
#include "cann/named_ops/operator.h"

namespace aclnn_host::named_recurrent {

namespace {

bool is_backwards(const std::optional<std::string>& direction) {
  const std::string name = direction.value_or("UNIDIRECTIONAL");
  expect_text("direction", name, {"UNIDIRECTIONAL", "REDIRECTIONAL"});
  return name == "REDIRECTIONAL";
}

// A state (B, H), which may have a leading dimension of 1.
void expect_state(const char* name, const at::Tensor& tensor, const at::Tensor& x, int64_t hidden) {
  const Integers shape{x.size(1), hidden}, stacked{1, x.size(1), hidden};
  EXPECT(tensor.sizes() == at::IntArrayRef(shape) || tensor.sizes() == at::IntArrayRef(stacked),
         name, " has shape ", tensor.sizes(), ", expected ", shape, " or ", stacked);
}
at::Tensor state(const char* name, const std::optional<at::Tensor>& tensor, const at::Tensor& x,
                 int64_t hidden) {
  if (tensor) expect_state(name, *tensor, x, hidden);
  return tensor ? wide(*tensor).reshape({x.size(1), hidden})
                : at::zeros({x.size(1), hidden}, wide(x).options());
}

// Refuses sequences of other shapes than (T, B, H).
void expect_sequences(const at::Tensor& x, int64_t hidden,
                      std::initializer_list<std::pair<const char*, const at::Tensor&>> sequences) {
  for (const auto& [name, sequence] : sequences) {
    expect_shape(name, sequence, {x.size(0), x.size(1), hidden});
  }
}
// Refuses the gradient of a state that is neither that of the last step nor that of every step.
void expect_state_gradient(const char* name, const at::Tensor& gradient, const at::Tensor& x,
                           int64_t hidden) {
  const Integers all{x.size(0), x.size(1), hidden}, last{x.size(1), hidden},
      stacked{1, x.size(1), hidden};
  EXPECT(gradient.sizes() == at::IntArrayRef(all) || gradient.sizes() == at::IntArrayRef(last) ||
             gradient.sizes() == at::IntArrayRef(stacked),
         name, " has shape ", gradient.sizes(), ", expected ", last, ", ", stacked, " or ", all);
}

// Flags of the steps that each sequence has, (T, B, 1), from a mask (T, B, H) or lengths (B).
struct Lengths {
  std::optional<at::Tensor> mask;

  Lengths(const std::optional<at::Tensor>& seq_length, const at::Tensor& x, int64_t hidden) {
    if (!seq_length || seq_length->dim() == 0 || seq_length->numel() == 0) return;
    const Integers of_steps{x.size(0), x.size(1), hidden}, of_sequences{x.size(1)};
    EXPECT(seq_length->sizes() == at::IntArrayRef(of_steps) ||
               seq_length->sizes() == at::IntArrayRef(of_sequences),
           "seq_length has shape ", seq_length->sizes(), ", expected ", of_steps, " or ",
           of_sequences);
    if (seq_length->dim() == 1) {
      expect_dtype("seq_length", *seq_length, {at::kInt, at::kLong},
                   " where it has the lengths of the sequences");
      const at::Tensor steps = at::arange(x.size(0), seq_length->options().dtype(at::kLong));
      mask = (steps.unsqueeze(1) < seq_length->to(at::kLong)).unsqueeze(2);
      return;
    }
    mask = seq_length->ne(0).narrow(-1, 0, 1);  // equal for all features
  }
  at::Tensor chosen(int64_t step, const at::Tensor& there, const at::Tensor& otherwise) const {
    return mask ? at::where((*mask)[step], there, otherwise) : there;
  }
  at::Tensor cleared(int64_t step, const at::Tensor& value) const {
    return mask ? at::where((*mask)[step], value, c10::Scalar(0.0)) : value;
  }
};

// The steps stacked in order; in stage 1 the computed ones stand for all.
at::Tensor sequence(const std::vector<at::Tensor>& steps, const at::Tensor& x, bool backwards,
                    int64_t hidden) {
  if (steps.empty()) return at::zeros({x.size(0), x.size(1), hidden}, wide(x).options());
  std::vector<at::Tensor> in_order = steps;
  if (backwards) std::reverse(in_order.begin(), in_order.end());
  const at::Tensor stacked = at::stack(in_order);
  return stacked.size(0) == x.size(0) ? stacked : stacked.expand({x.size(0), x.size(1), hidden});
}

// ---- LSTM

// Reorders the gates of parameters from the order in the call's attribute to that of the
// computation, or back. CANN's default is i, j, f, o.
at::Tensor reordered(const at::Tensor& parameter, const std::optional<std::string>& gate_order) {
  const std::string order = gate_order.value_or("ijfo");
  if (order == "ifjo" || order == "ifco") return parameter;
  expect_text("gate_order", order, {"ijfo", "ifjo"});
  return at::cat(
      {part(parameter, 0, 4), part(parameter, 2, 4), part(parameter, 1, 4), part(parameter, 3, 4)},
      -1);
}

std::optional<at::Tensor> reordered(const std::optional<at::Tensor>& parameter,
                                    const std::optional<std::string>& gate_order) {
  return parameter ? std::optional(reordered(*parameter, gate_order)) : std::nullopt;
}

// Refuses an optional input that has dimensions and elements; programs pass scalars and empty
// tensors for none.
void expect_none(const char* name, const std::optional<at::Tensor>& tensor) {
  EXPECT(!tensor || tensor->dim() == 0 || tensor->numel() == 0, name,
         " is given, expected none: the host CANN does not emulate it");
}

struct LstmOutputs {
  std::vector<at::Tensor> y, h, c, i, j, f, o, tanhc;
};

// The sequences of the hidden state, both states, the gates and tanh of the cell state.
auto lstm(const at::Tensor& x, const at::Tensor& input_weight, const at::Tensor& hidden_weight,
          const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& seq_length,
          const std::optional<at::Tensor>& init_h, const std::optional<at::Tensor>& init_c,
          const std::optional<std::string>& direction, double forget_bias) {
  const int64_t hidden = hidden_weight.size(0);
  const Lengths lengths(seq_length, x, hidden);
  const bool backwards = is_backwards(direction);
  at::Tensor h = state("init_h", init_h, x, hidden), c = state("init_c", init_c, x, hidden);
  LstmOutputs out;
  for (int64_t n = 0; n < steps_to_compute(x); ++n) {
    const int64_t step = step_index(n, x.size(0), backwards);
    at::Tensor gates =
        at::matmul(wide(x[step]), wide(input_weight)) + at::matmul(h, wide(hidden_weight));
    if (bias) gates = gates + wide(*bias);
    const at::Tensor i = at::sigmoid(part(gates, 0, 4)), j = at::tanh(part(gates, 2, 4));
    const at::Tensor f = at::sigmoid(part(gates, 1, 4) + forget_bias);
    const at::Tensor o = at::sigmoid(part(gates, 3, 4));
    const at::Tensor next = f * c + i * j, tanhc = at::tanh(next), result = o * tanhc;
    c = lengths.chosen(step, next, c);
    h = lengths.chosen(step, result, h);
    out.y.push_back(lengths.cleared(step, result));
    out.h.push_back(h), out.c.push_back(c);
    out.i.push_back(i), out.j.push_back(j), out.f.push_back(f), out.o.push_back(o);
    out.tanhc.push_back(tanhc);
  }
  const auto all = [&](const std::vector<at::Tensor>& steps) {
    return sequence(steps, x, backwards, hidden);
  };
  return std::tuple(all(out.y), all(out.h), all(out.c), all(out.i), all(out.j), all(out.f),
                    all(out.o), all(out.tanhc));
}

// Checks a weight with this number of gates, and returns the hidden size.
int64_t hidden_size(const char* name, const at::Tensor& weight, int64_t gates) {
  EXPECT(weight.dim() == 2 && weight.size(1) % gates == 0 && weight.size(1) > 0, name,
         " has shape ", weight.sizes(), ", expected (features, ", gates, " * H)");
  return weight.size(1) / gates;
}

// The values of a step that the gradient needs.
struct LstmTrace {
  at::Tensor x, init_h, init_c, h, c, i, j, f, o, tanhc;
};

struct LstmGradients {
  at::Tensor of_input, of_hidden, of_bias, of_x, of_h, of_c;
};

// The gradient of a state at a step: that of the last state, or that of every step.
at::Tensor of_step(const at::Tensor& gradient, int64_t n, int64_t step, const at::Tensor& like) {
  if (gradient.numel() == like.numel() && n == 0) return wide(gradient).reshape(like.sizes());
  if (gradient.numel() == like.numel()) return at::zeros(like.sizes(), like.options());
  return wide(gradient)[step];
}

// Computes the gradients from the last step to the first.
LstmGradients lstm_gradients(const LstmTrace& t, const at::Tensor& input_weight,
                             const at::Tensor& hidden_weight, const at::Tensor& dy,
                             const at::Tensor& dh, const at::Tensor& dc,
                             const std::optional<at::Tensor>& seq_length, bool backwards) {
  const int64_t hidden = hidden_weight.size(0), steps = t.x.size(0);
  const Lengths lengths(seq_length, t.x, hidden);
  expect_sequences(t.x, hidden,
                   {{"h", t.h},
                    {"c", t.c},
                    {"dy", dy},
                    {"i", t.i},
                    {"j", t.j},
                    {"f", t.f},
                    {"o", t.o},
                    {"tanhc", t.tanhc}});
  expect_state_gradient("dh", dh, t.x, hidden);
  expect_state_gradient("dc", dc, t.x, hidden);
  const at::Tensor init_h = state("init_h", t.init_h, t.x, hidden);
  const at::Tensor init_c = state("init_c", t.init_c, t.x, hidden);
  std::vector<at::Tensor> gates, before;  // of each step; the hidden state before it
  LstmGradients out;
  out.of_h = at::zeros(init_h.sizes(), init_h.options());
  out.of_c = out.of_h;
  const bool is_all = steps_to_compute(t.x) == steps;
  for (int64_t n = 0; n < steps_to_compute(t.x); ++n) {
    const int64_t step = step_index(n, steps, !backwards);
    const int64_t last = backwards ? step + 1 : step - 1;
    const bool is_first = n == steps - 1 || !is_all;
    const at::Tensor h_before = is_first ? init_h : wide(t.h[last]);
    const at::Tensor c_before = is_first ? init_c : wide(t.c[last]);
    const at::Tensor of_h = out.of_h + of_step(dh, n, step, init_h);
    const at::Tensor of_c = out.of_c + of_step(dc, n, step, init_c);
    const at::Tensor i = wide(t.i[step]), j = wide(t.j[step]), f = wide(t.f[step]);
    const at::Tensor o = wide(t.o[step]), tanhc = wide(t.tanhc[step]);
    const at::Tensor of_result = of_h + wide(dy[step]);
    const at::Tensor of_next = of_c + of_result * o * (1 - tanhc * tanhc);
    const at::Tensor of_gates =
        at::cat({of_next * j * i * (1 - i), of_next * c_before * f * (1 - f),
                 of_next * i * (1 - j * j), of_result * tanhc * o * (1 - o)},
                -1);
    gates.push_back(lengths.cleared(step, of_gates));
    before.push_back(h_before);
    out.of_h = lengths.chosen(step, at::matmul(gates.back(), wide(hidden_weight).t()), of_h);
    out.of_c = lengths.chosen(step, of_next * f, of_c);
  }
  const auto flat = [&](const std::vector<at::Tensor>& list, int64_t features) {
    return sequence(list, t.x, !backwards, features).reshape({-1, features});
  };
  const at::Tensor all = flat(gates, 4 * hidden);
  out.of_input = at::matmul(wide(t.x).reshape({-1, t.x.size(2)}).t(), all);
  out.of_hidden = at::matmul(flat(before, hidden).t(), all);
  out.of_bias = all.sum(0);
  out.of_x = at::matmul(all, wide(input_weight).t()).view(t.x.sizes());
  return out;
}

void expect_lstm(const std::optional<std::string>& cell_type) {
  expect_text("cell_type", cell_type.value_or("LSTM"), {"LSTM"});
}

// Checks the weights of x and those of the hidden state.
void check_lstm_weights(const at::Tensor& x, const char* input_name, const at::Tensor& of_input,
                        const char* hidden_name, const at::Tensor& of_hidden) {
  expect_dims("x", x, 3);
  const int64_t hidden = hidden_size(input_name, of_input, 4);
  expect_shape(input_name, of_input, {x.size(2), 4 * hidden});
  expect_shape(hidden_name, of_hidden, {hidden, 4 * hidden});
}

// Requires an absent bias, or one with a number for each of the gates of the weight.
void expect_bias(const char* name, const std::optional<at::Tensor>& bias,
                 const at::Tensor& weight) {
  if (bias) expect_shape(name, *bias, {weight.size(1)});
}

// Splits a matrix into the weights of x and those of the hidden state.
std::pair<at::Tensor, at::Tensor> split(const at::Tensor& w, const at::Tensor& x) {
  expect_dims("x", x, 3);
  const int64_t hidden = hidden_size("w", w, 4);
  EXPECT(w.size(0) == x.size(2) + hidden, "w has shape ", w.sizes(), ", expected (",
         x.size(2) + hidden, ", ", 4 * hidden, ")");
  return {w.narrow(0, 0, x.size(2)), w.narrow(0, x.size(2), hidden)};
}

// ---- GRU

struct GruOutputs {
  std::vector<at::Tensor> y, update, reset, fresh, hidden_new;
};

}  // namespace

NAMED_OPERATOR(DynamicRNN, (Floating<In>, x), (Floating<In>, w), (Optional<In>, b),
               (Optional<In>, seq_length), (Optional<In>, init_h), (Optional<In>, init_c), (Out, y),
               (Out, output_h), (Out, output_c), (Out, i), (Out, j), (Out, f), (Out, o),
               (Out, tanhc), (Attribute<std::string>, cell_type),
               (Attribute<std::string>, direction), (Only, cell_depth, "1|0"),
               (Only, use_peephole, "false"), (Only, keep_prob, "1|-1"), (Only, cell_clip, "-1"),
               (Only, num_proj, "0"), (Only, time_major, "true"), (Only, activation, "tanh"),
               (Attribute<double>, forget_bias), (Attribute<std::string>, gate_order),
               (Unused<Attribute<bool>>, is_training, "the gates are written in either case")) {
  const auto [of_input, of_hidden] = split(reordered(w, gate_order), x);
  expect_bias("b", b, w);
  expect_lstm(cell_type);
  std::tie(y, output_h, output_c, i, j, f, o, tanhc) =
      lstm(x, of_input, of_hidden, reordered(b, gate_order), seq_length, init_h, init_c, direction,
           forget_bias.value_or(0));
}
NAMED_OPERATOR(DynamicRNNV2, (Floating<In>, x), (Floating<In>, weight_input),
               (Floating<In>, weight_hidden), (Optional<In>, b), (Optional<In>, seq_length),
               (Optional<In>, init_h), (Optional<In>, init_c), (Out, y), (Out, output_h),
               (Out, output_c), (Out, i), (Out, j), (Out, f), (Out, o), (Out, tanhc),
               (Attribute<std::string>, cell_type), (Attribute<std::string>, direction),
               (Only, cell_depth, "1|0"), (Only, use_peephole, "false"), (Only, keep_prob, "1|-1"),
               (Only, cell_clip, "-1"), (Only, num_proj, "0"), (Only, time_major, "true"),
               (Only, activation, "tanh"), (Only, recurrent_activation, "sigmoid"),
               (Only, stateful, "false"), (Only, merge_mode, "concat"),
               (Attribute<double>, forget_bias), (Attribute<std::string>, gate_order),
               (Unused<Attribute<bool>>, is_training, "the gates are written in either case")) {
  expect_lstm(cell_type);
  check_lstm_weights(x, "weight_input", weight_input, "weight_hidden", weight_hidden);
  expect_bias("b", b, weight_input);
  std::tie(y, output_h, output_c, i, j, f, o, tanhc) = lstm(
      x, reordered(weight_input, gate_order), reordered(weight_hidden, gate_order),
      reordered(b, gate_order), seq_length, init_h, init_c, direction, forget_bias.value_or(0));
}
NAMED_OPERATOR(DynamicRNNGrad, (Floating<In>, x), (Floating<In>, w),
               (Unused<Optional<In>>, b, "the gradients do not depend on it"),
               (Unused<Floating<In>>, y, "the gradients need h, which is given, and not y"),
               (Floating<In>, init_h), (Floating<In>, init_c), (Floating<In>, h), (Floating<In>, c),
               (Floating<In>, dy), (Floating<In>, dh), (Floating<In>, dc), (Floating<In>, i),
               (Floating<In>, j), (Floating<In>, f), (Floating<In>, o), (Floating<In>, tanhc),
               (Optional<In>, seq_length), (Optional<In>, mask), (Optional<In>, wci),
               (Optional<In>, wcf), (Optional<In>, wco), (Out, dw), (Out, db), (Out, dx),
               (Out, dh_prev), (Out, dc_prev), (Attribute<std::string>, cell_type),
               (Attribute<std::string>, direction), (Only, cell_depth, "1|0"),
               (Only, use_peephole, "false"), (Only, keep_prob, "1|-1"), (Only, cell_clip, "-1"),
               (Only, num_proj, "0"), (Only, time_major, "true"),
               (Unused<Attribute<double>>, forget_bias, "the gates are given with it in them"),
               (Attribute<std::string>, gate_order)) {
  expect_none("mask", mask), expect_none("wci", wci), expect_none("wcf", wcf);
  expect_none("wco", wco);
  const auto [of_input, of_hidden] = split(reordered(w, gate_order), x);
  expect_lstm(cell_type);
  const LstmGradients g =
      lstm_gradients({x, init_h, init_c, h, c, i, j, f, o, tanhc}, of_input, of_hidden, dy, dh, dc,
                     seq_length, is_backwards(direction));
  dw = reordered(at::cat({g.of_input, g.of_hidden}, 0), gate_order);
  db = reordered(g.of_bias, gate_order);
  dx = g.of_x;
  expect_state("dh_prev", dh_prev, x, g.of_h.size(-1));
  expect_state("dc_prev", dc_prev, x, g.of_h.size(-1));
  dh_prev = g.of_h.reshape(dh_prev->sizes());
  dc_prev = g.of_c.reshape(dc_prev->sizes());
}
NAMED_OPERATOR(DynamicRNNV2Grad, (Floating<In>, x), (Floating<In>, w_x), (Floating<In>, w_h),
               (Unused<Floating<In>>, y, "the gradients need h, which is given, and not y"),
               (Floating<In>, init_h), (Floating<In>, init_c), (Floating<In>, h), (Floating<In>, c),
               (Floating<In>, dy), (Floating<In>, dh), (Floating<In>, dc), (Floating<In>, i),
               (Floating<In>, j), (Floating<In>, f), (Floating<In>, o), (Floating<In>, tanhc),
               (Optional<In>, seq_length), (Optional<In>, wci), (Optional<In>, wcf),
               (Optional<In>, wco), (Optional<In>, mask), (Out, dw_x), (Out, dw_h), (Out, db),
               (Out, dx), (Out, dh_prev), (Out, dc_prev), (Attribute<std::string>, cell_type),
               (Attribute<std::string>, direction), (Only, cell_depth, "1|0"),
               (Only, use_peephole, "false"), (Only, keep_prob, "1|-1"), (Only, cell_clip, "-1"),
               (Only, num_proj, "0"), (Only, time_major, "true"), (Only, activation, "tanh"),
               (Only, recurrent_activation, "sigmoid"), (Only, stateful, "false"),
               (Only, merge_mode, "concat"),
               (Unused<Attribute<double>>, forget_bias, "the gates are given with it in them"),
               (Attribute<std::string>, gate_order)) {
  expect_none("mask", mask), expect_none("wci", wci), expect_none("wcf", wcf);
  expect_none("wco", wco);
  expect_dims("x", x, 2, 3);
  const at::Tensor inputs = x.dim() == 2 ? x.unsqueeze(0) : x;
  expect_lstm(cell_type);
  check_lstm_weights(inputs, "w_x", w_x, "w_h", w_h);
  // One step may be without a dimension of steps.
  const auto steps = [](const at::Tensor& t) { return t.dim() == 2 ? t.unsqueeze(0) : t; };
  const LstmGradients g = lstm_gradients({inputs, init_h, init_c, steps(h), steps(c), steps(i),
                                          steps(j), steps(f), steps(o), steps(tanhc)},
                                         reordered(w_x, gate_order), reordered(w_h, gate_order),
                                         steps(dy), dh, dc, seq_length, is_backwards(direction));
  dw_x = reordered(g.of_input, gate_order);
  dw_h = reordered(g.of_hidden, gate_order);
  db = reordered(g.of_bias, gate_order);
  dx = g.of_x.view(dx->sizes());
  expect_state("dh_prev", dh_prev, inputs, w_h.size(0));
  expect_state("dc_prev", dc_prev, inputs, w_h.size(0));
  dh_prev = g.of_h.reshape(dh_prev->sizes());
  dc_prev = g.of_c.reshape(dc_prev->sizes());
}
NAMED_OPERATOR(DynamicGRUV2, (Floating<In>, x), (Floating<In>, weight_input),
               (Floating<In>, weight_hidden), (Optional<In>, bias_input),
               (Optional<In>, bias_hidden), (Optional<In>, seq_length), (Optional<In>, init_h),
               (Out, y), (Out, output_h), (Out, update), (Out, reset), (Out, new_),
               (Out, hidden_new), (Attribute<std::string>, direction), (Only, cell_depth, "1"),
               (Only, keep_prob, "1"), (Only, cell_clip, "-1"), (Only, num_proj, "0"),
               (Only, time_major, "true"), (Only, activation, "tanh"), (Stated, gate_order, "rzh"),
               (Only, reset_after, "true"),
               (Unused<Attribute<bool>>, is_training, "the gates are written in either case")) {
  expect_none("seq_length", seq_length);
  expect_dims("x", x, 3);
  const int64_t hidden = hidden_size("weight_input", weight_input, 3);
  expect_shape("weight_input", weight_input, {x.size(2), 3 * hidden});
  expect_shape("weight_hidden", weight_hidden, {hidden, 3 * hidden});
  expect_bias("bias_input", bias_input, weight_input);
  expect_bias("bias_hidden", bias_hidden, weight_hidden);
  const bool backwards = is_backwards(direction);
  GruOutputs out;
  at::Tensor h = state("init_h", init_h, x, hidden);
  for (int64_t n = 0; n < steps_to_compute(x); ++n) {
    const int64_t step = step_index(n, x.size(0), backwards);
    at::Tensor of_x = at::matmul(wide(x[step]), wide(weight_input));
    at::Tensor of_h = at::matmul(h, wide(weight_hidden));
    if (bias_input) of_x = of_x + wide(*bias_input);
    if (bias_hidden) of_h = of_h + wide(*bias_hidden);
    const at::Tensor r = at::sigmoid(part(of_x, 0, 3) + part(of_h, 0, 3));
    const at::Tensor z = at::sigmoid(part(of_x, 1, 3) + part(of_h, 1, 3));
    const at::Tensor fresh = at::tanh(part(of_x, 2, 3) + r * part(of_h, 2, 3));
    h = (1 - z) * fresh + z * h;
    out.y.push_back(h), out.update.push_back(z), out.reset.push_back(r);
    out.fresh.push_back(fresh), out.hidden_new.push_back(part(of_h, 2, 3));
  }
  const auto all = [&](const std::vector<at::Tensor>& steps) {
    return sequence(steps, x, backwards, hidden);
  };
  y = all(out.y), output_h = all(out.y), update = all(out.update), reset = all(out.reset);
  new_ = all(out.fresh), hidden_new = all(out.hidden_new);
}
NAMED_OPERATOR(DynamicGRUV2Grad, (Floating<In>, x), (Floating<In>, weight_input),
               (Floating<In>, weight_hidden),
               (Unused<Floating<In>>, y, "the gradients need h, which is given, and not y"),
               (Floating<In>, init_h), (Floating<In>, h), (Floating<In>, dy), (Floating<In>, dh),
               (Floating<In>, update), (Floating<In>, reset), (Floating<In>, new_),
               (Floating<In>, hidden_new), (Optional<In>, seq_length), (Optional<In>, mask),
               (Out, dw_input), (Out, dw_hidden), (Out, db_input), (Out, db_hidden), (Out, dx),
               (Out, dh_prev), (Attribute<std::string>, direction), (Only, cell_depth, "1|0"),
               (Only, keep_prob, "1|-1"), (Only, cell_clip, "-1"), (Only, num_proj, "0"),
               (Only, time_major, "true"),
               (Unused<Attribute<std::string>>, bias_type,
                "the gradients of the biases are written in any case"),
               (Stated, gate_order, "rzh"), (Only, reset_after, "true")) {
  expect_none("seq_length", seq_length), expect_none("mask", mask);
  expect_dims("x", x, 3);
  const int64_t hidden = hidden_size("weight_input", weight_input, 3), steps = x.size(0);
  expect_shape("weight_input", weight_input, {x.size(2), 3 * hidden});
  expect_shape("weight_hidden", weight_hidden, {hidden, 3 * hidden});
  expect_sequences(x, hidden,
                   {{"h", h},
                    {"dy", dy},
                    {"update", update},
                    {"reset", reset},
                    {"new", new_},
                    {"hidden_new", hidden_new}});
  expect_state_gradient("dh", dh, x, hidden);
  EXPECT(!is_backwards(direction), "direction is REDIRECTIONAL, expected UNIDIRECTIONAL");
  const bool is_all = steps_to_compute(x) == steps;
  const at::Tensor first = state("init_h", init_h, x, hidden);
  at::Tensor carried = at::zeros(first.sizes(), first.options());
  std::vector<at::Tensor> of_x, of_h, before;
  for (int64_t n = 0; n < steps_to_compute(x); ++n) {
    const int64_t step = steps - 1 - n;
    const at::Tensor last = step == 0 || !is_all ? first : wide(h[step - 1]);
    at::Tensor of_state = carried + wide(dy[step]);
    if (dh.numel() != first.numel()) {
      of_state = of_state + wide(dh[step]);
    } else if (n == 0) {
      of_state = of_state + wide(dh).reshape(first.sizes());
    }
    const at::Tensor z = wide(update[step]), r = wide(reset[step]), fresh = wide(new_[step]);
    const at::Tensor of_fresh = of_state * (1 - z) * (1 - fresh * fresh);
    const at::Tensor of_z = of_state * (last - fresh) * z * (1 - z);
    const at::Tensor of_r = of_fresh * wide(hidden_new[step]) * r * (1 - r);
    of_x.push_back(at::cat({of_r, of_z, of_fresh}, -1));
    of_h.push_back(at::cat({of_r, of_z, of_fresh * r}, -1));
    before.push_back(last);
    carried = of_state * z + at::matmul(of_h.back(), wide(weight_hidden).t());
  }
  const auto flat = [&](const std::vector<at::Tensor>& list, int64_t features) {
    return sequence(list, x, /*backwards=*/true, features).reshape({-1, features});
  };
  const at::Tensor gates_x = flat(of_x, 3 * hidden), gates_h = flat(of_h, 3 * hidden);
  dw_input = at::matmul(wide(x).reshape({-1, x.size(2)}).t(), gates_x);
  dw_hidden = at::matmul(flat(before, hidden).t(), gates_h);
  db_input = gates_x.sum(0);
  db_hidden = gates_h.sum(0);
  dx = at::matmul(gates_x, wide(weight_input).t()).view(x.sizes());
  expect_state("dh_prev", dh_prev, x, hidden);
  dh_prev = carried.reshape(dh_prev->sizes());
}

}  // namespace aclnn_host::named_recurrent
