// Feed-forward layers, for all tokens or for those of each expert. Products are summed in FP32, and
// the values between both products are not rounded, except to INT8 in quantised layers.

#include "cann/rows/integers.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::matmul_feed_forward_rows {

namespace {

// An activation function by its name, in upper or lower case.
class Activation {
 public:
  explicit Activation(const std::string& name) {
    for (const char letter : name) {
      const bool is_capital = letter >= 'A' && letter <= 'Z';
      name_ += is_capital ? static_cast<char>(letter - 'A' + 'a') : letter;
    }
    expect_text("activation", name_,
                {"fastgelu", "gelu", "relu", "silu", "geglu", "swiglu", "reglu"});
  }
  // True if the activation multiplies one half of a row by the other.
  bool is_gated() const { return name_ == "geglu" || name_ == "swiglu" || name_ == "reglu"; }

  at::Tensor operator()(const at::Tensor& x) const {
    if (name_ == "relu") return at::relu(x);
    if (name_ == "silu") return at::silu(x);
    if (name_ == "gelu") return at::gelu(x, "tanh");
    return x * at::sigmoid(x * 1.702);
  }

 private:
  std::string name_;
};

// An optional argument and its name.
struct Parameter {
  const char* name;
  OptionalTensor tensor;

  explicit operator bool() const { return tensor.has_value(); }
  // The slice of an expert.
  Parameter for_expert(std::optional<int64_t> expert) const {
    return {name, tensor && expert ? OptionalTensor(tensor->select(0, *expert)) : tensor};
  }
};

// The parameters of one of the two products.
struct Step {
  StoredTensor weight;
  Parameter bias;
  Parameter dequantisation;  // the scale of the INT8 sums
  Parameter weight_scale;    // weight_scale and offset are of weights that are quantised alone
  Parameter weight_offset;

  Step for_expert(std::optional<int64_t> expert) const {
    const at::Tensor& all = weight.elements;
    return {{expert ? all.select(0, *expert) : all, weight.dtype, weight.format},
            bias.for_expert(expert),
            dequantisation.for_expert(expert),
            weight_scale.for_expert(expert),
            weight_offset.for_expert(expert)};
  }

  // Expands numbers for groups of rows to each element of the weight.
  at::Tensor over_weight(const at::Tensor& numbers) const {
    const int64_t rows = weight.elements.size(0);
    if (numbers.dim() < 2) return wide(numbers);
    return wide(numbers).repeat_interleave(rows / numbers.size(0), 0);
  }
  at::Tensor values() const {
    const at::Tensor& elements = weight.elements;
    if (!weight_scale) return wide(elements);
    at::Tensor values = elements.to(at::kFloat);
    if (weight_offset) values = values + over_weight(*weight_offset.tensor);
    return values * over_weight(*weight_scale.tensor);
  }
  at::Tensor product(const at::Tensor& rows) const {
    return bias ? at::addmm(wide(*bias.tensor), rows, values()) : at::mm(rows, values());
  }

  // A product of INT8. A scale that is given as bits makes the result FLOAT16.
  at::Tensor dequantised_product(const at::Tensor& rows) const {
    at::Tensor sums = exact_product(rows, weight.elements);
    if (bias) sums = sums + *bias.tensor;
    const at::Tensor& scale = *dequantisation.tensor;
    const at::Tensor result = sums.to(at::kFloat) * decoded_scale(scale);
    return holds_bits(scale) ? result.to(at::kHalf).to(at::kFloat) : result;
  }
};

// The arguments of the layer except for the experts.
struct Layer {
  at::Tensor x;
  Step first;
  Step second;
  Parameter scale;  // scale and offset quantise the values between two quantised products
  Parameter offset;
  Activation activation;
  int64_t precise;

  bool is_quantised() const { return x.scalar_type() == at::kChar; }
  bool has_quantised_weights() const { return static_cast<bool>(first.weight_scale); }

  void check_parameters(const Output& y) const {
    const bool is_plain = !is_quantised() && !has_quantised_weights();
    const auto expect = [&](bool is_here, std::initializer_list<const Parameter*> parameters) {
      for (const Parameter* parameter : parameters) {
        EXPECT(is_here == static_cast<bool>(*parameter), parameter->name, " is ",
               *parameter ? "a tensor" : "null", ", expected ", is_here ? "a tensor" : "null",
               " as x is ", dtype_text(x.scalar_type()), " and antiquantScale1 is ",
               has_quantised_weights() ? "a tensor" : "null");
      }
    };
    expect(is_quantised(), {&scale, &offset, &first.dequantisation, &second.dequantisation});
    expect(has_quantised_weights(), {&second.weight_scale});
    if (is_quantised()) expect(false, {&first.weight_scale});
    if (is_plain || is_quantised()) expect(false, {&first.weight_offset, &second.weight_offset});
    if (is_quantised()) return expect_reduced_float("y", y, " as x is INT8");
    EXPECT(x.is_floating_point(), "x has dtype ", dtype_text(x.scalar_type()),
           ", expected a floating-point type or INT8");
    expect_dtype(y, x);
    if (!is_plain) {
      const std::string reason = text_of({" as ", first.weight_scale.name, " is a tensor"});
      return expect_reduced_float("x", x, reason.c_str());
    }
    expect_one_of("innerPrecise", precise, {0, 1});
    if (x.scalar_type() == at::kBFloat16) {
      expect_one_of("innerPrecise", precise, {0}, " because x is BFLOAT16");
    }
  }

  // Checks a product with a matrix of `rows` by `columns`.
  void check_step(const Step& step, const char* name, std::optional<int64_t> experts, int64_t rows,
                  int64_t columns, at::ScalarType result) const {
    std::vector<int64_t> lead;
    if (experts) lead.push_back(*experts);
    const auto shape = [&](std::initializer_list<int64_t> sizes) {
      std::vector<int64_t> all = lead;
      all.insert(all.end(), sizes);
      return all;
    };
    if (has_quantised_weights()) {
      expect_type(name, step.weight, {ACL_INT8, ACL_INT4});
    } else {
      expect_type(name, step.weight, {acl_type(x.scalar_type())});
    }
    expect_format(name, step.weight);
    expect_shape(name, step.weight.elements, shape({rows, columns}));
    if (step.bias) {
      // With BFLOAT16 the document requires FLOAT.
      const bool is_bfloat16 = x.scalar_type() == at::kBFloat16;
      expect_shape(step.bias.name, *step.bias.tensor, shape({columns}));
      expect_dtype(step.bias.name, *step.bias.tensor,
                   is_quantised() ? at::kInt
                   : is_bfloat16  ? at::kFloat
                                  : x.scalar_type());
    }
    if (step.dequantisation) {
      const auto& [scale_name, tensor] = step.dequantisation;
      if (result == at::kBFloat16) {
        expect_dtype(scale_name, *tensor, {at::kBFloat16}, " as y is BFLOAT16");
      } else {
        expect_dtype(scale_name, *tensor, {at::kUInt64, at::kLong, at::kFloat}, " as y is FLOAT16");
      }
      expect_shape(scale_name, *tensor, shape({columns}));
    }
    if (!step.weight_scale) return;
    const auto& [scale_name, tensor] = step.weight_scale;
    expect_dtype(scale_name, *tensor, x.scalar_type());
    const size_t dims = lead.size();
    if (tensor->dim() == static_cast<int64_t>(dims) + 2) {
      const int64_t groups = tensor->size(static_cast<int64_t>(dims));
      EXPECT(groups > 0 && rows % groups == 0, scale_name, " has ", groups,
             " groups, expected a divisor of ", rows, ", the rows of ", name);
      expect_shape(scale_name, *tensor, shape({groups, columns}));
    } else {
      expect_shape(scale_name, *tensor, shape({columns}));
    }
    if (step.weight_offset)
      expect_like(step.weight_offset.name, *step.weight_offset.tensor, *tensor);
  }

  // Checks the shapes for this number of experts; without experts there is no dimension for them.
  void check_with(std::optional<int64_t> experts, const Output& y) const {
    expect_dims("x", x, 2, 8);
    EXPECT(!activation.is_gated(),
           "activation is a gated one, expected \"fastgelu\", \"gelu\", \"relu\" or \"silu\"; "
           "the host CANN does not emulate the others");
    check_parameters(y);
    const at::Tensor& weight1 = first.weight.elements;
    expect_dims("weight1", weight1, experts ? 3 : 2);
    const int64_t inner = weight1.size(-1);
    EXPECT(inner < 65536 && x.size(-1) < 65536, "weight1 has shape ", weight1.sizes(),
           ", expected rows and columns of less than 65536");
    check_step(first, "weight1", experts, x.size(-1), inner, y->scalar_type());
    check_step(second, "weight2", experts, inner, x.size(-1), y->scalar_type());
    if (is_quantised()) {
      const std::string reason = text_of({" as ", first.dequantisation.name, " has"});
      expect_dtype(second.dequantisation.name, *second.dequantisation.tensor,
                   {first.dequantisation.tensor->scalar_type()}, reason.c_str());
      const int64_t count = experts.value_or(1);
      expect_tensor(offset.name, *offset.tensor, at::kFloat, {count});
      expect_dtype(scale.name, *scale.tensor, at::kFloat);
      const at::IntArrayRef sizes = scale.tensor->sizes();
      const std::vector<int64_t> of_columns =
          experts ? std::vector<int64_t>{count, inner} : std::vector<int64_t>{inner};
      EXPECT(sizes == at::IntArrayRef{count} || sizes == at::IntArrayRef(of_columns), scale.name,
             " has shape ", sizes, ", expected ", at::IntArrayRef{count}, " or ",
             at::IntArrayRef(of_columns));
    }
    expect_shape("y", y, x.sizes());
  }

  // The results of some rows, with the parameters of an expert if there are experts.
  at::Tensor run(const at::Tensor& rows, std::optional<int64_t> expert) const {
    const Step from = first.for_expert(expert);
    const Step to = second.for_expert(expert);
    if (!is_quantised()) return to.product(activation(from.product(wide(rows))));
    // If the result of the first product is FLOAT16, its quantisation is computed in FLOAT16, too.
    const bool is_half = holds_bits(*first.dequantisation.tensor);
    const auto computed_with = [&](const at::Tensor& tensor) {
      return is_half ? tensor.to(at::kHalf) : tensor;
    };
    const at::Tensor between = computed_with(activation(from.dequantised_product(rows)));
    return to.dequantised_product(
        to_int8(between * computed_with(*scale.for_expert(expert).tensor) +
                computed_with(*offset.for_expert(expert).tensor)));
  }

  at::Tensor run() const { return run(x.flatten(0, -2), std::nullopt).reshape(x.sizes()); }
  // Each expert takes the number of consecutive rows in `counts`.
  at::Tensor run(const std::vector<int64_t>& counts) const {
    const at::Tensor rows = x.flatten(0, -2);
    std::vector<at::Tensor> results;
    int64_t begin = 0;
    for (size_t expert = 0; expert < counts.size(); ++expert) {
      results.push_back(run(rows.narrow(0, begin, counts[expert]), static_cast<int64_t>(expert)));
      begin += counts[expert];
    }
    return at::cat(results, 0).reshape(x.sizes());
  }
};

// The number of rows of each expert, from these numbers or, with `are_ends`, from the ends of the
// ranges.
std::vector<int64_t> counts_of(at::IntArrayRef tokens, bool are_ends, int64_t rows) {
  std::vector<int64_t> counts;
  int64_t sum = 0;
  for (const int64_t value : tokens) {
    const int64_t most = rows - sum;
    EXPECT(value >= (are_ends ? sum : 0) && value <= (are_ends ? rows : most),
           "expertTokens has the value ", value, ", expected ", are_ends ? "ends" : "numbers",
           " of the ", rows, " rows of x");
    counts.push_back(are_ends ? value - sum : value);
    sum += counts.back();
  }
  EXPECT(sum == rows, "expertTokens covers ", sum, " rows, expected ", rows, " as x has");
  return counts;
}

int64_t rows_of(const at::Tensor& x) {
  return x.flatten(0, -2).size(0);
}

// Null or empty `tokens` means that there are no experts.
void write(const Layer& layer, const at::OptionalIntArrayRef& tokens, bool are_ends, Output& y) {
  if (!tokens || tokens->empty()) {
    layer.check_with(std::nullopt, y);
    y = layer.run();
    return;
  }
  EXPECT(tokens->size() <= 256, "expertTokens has ", tokens->size(),
         " values, expected at most 256");
  layer.check_with(static_cast<int64_t>(tokens->size()), y);
  y = layer.run(counts_of(*tokens, are_ends, rows_of(layer.x)));
}

// The values of a device tensor. In stage 1, where they are unknown, the first expert gets all
// rows.
std::vector<int64_t> values_of(const at::Tensor& tokens, bool are_ends, int64_t rows) {
  if (has_values(tokens)) return integers_in(tokens);
  std::vector<int64_t> values(static_cast<size_t>(tokens.size(0)), are_ends ? rows : 0);
  values[0] = rows;
  return values;
}

at::Tensor tanh_gelu(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}

// The layer of versions 1 and 2.
template <class Version>
Layer layer_of(const Version& row) {
  return {row.x,
          {row.weight1,
           {"bias1", row.bias1},
           {"deqScale1", row.deqScale1},
           {"antiquantScale1", row.antiquantScale1},
           {"antiquantOffset1", row.antiquantOffset1}},
          {row.weight2,
           {"bias2", row.bias2},
           {"deqScale2", row.deqScale2},
           {"antiquantScale2", row.antiquantScale2},
           {"antiquantOffset2", row.antiquantOffset2}},
          {"scale", row.scale},
          {"offset", row.offset},
          Activation(row.activation),
          row.innerPrecise};
}

}  // namespace

// Behaviour of FFN*: The activations are gelu (tanh), fastgelu, relu and silu. Weights are
// floating-point numbers, weights of INT8 and INT4 alone, or INT8 throughout.
// Limit of FFN*: Gated activations are refused with 161002.
ACLNN_STRUCT(FFN, (In, x), (Stored<In>, weight1), (Stored<In>, weight2),
             (Optional<Ints>, expertTokens), (Optional<In>, bias1), (Optional<In>, bias2),
             (Optional<In>, scale), (Optional<In>, offset), (Optional<In>, deqScale1),
             (Optional<In>, deqScale2), (Optional<In>, antiquantScale1),
             (Optional<In>, antiquantScale2), (Optional<In>, antiquantOffset1),
             (Optional<In>, antiquantOffset2), (const char*, activation), (int64_t, innerPrecise),
             (Out, y)) {
  write(layer_of(*this), expertTokens, /*are_ends=*/false, y);
}
ACLNN_STRUCT(FFNV2, (In, x), (Stored<In>, weight1), (Stored<In>, weight2),
             (Optional<Ints>, expertTokens), (Optional<In>, bias1), (Optional<In>, bias2),
             (Optional<In>, scale), (Optional<In>, offset), (Optional<In>, deqScale1),
             (Optional<In>, deqScale2), (Optional<In>, antiquantScale1),
             (Optional<In>, antiquantScale2), (Optional<In>, antiquantOffset1),
             (Optional<In>, antiquantOffset2), (const char*, activation), (int64_t, innerPrecise),
             (bool, tokensIndexFlag), (Out, y)) {
  write(layer_of(*this), expertTokens, tokensIndexFlag, y);
}
ACLNN(FFNV3, (In, x), (Stored<In>, weight1), (Stored<In>, weight2),
      (Optional<In>, expertTokensOptional), (Optional<In>, bias1Optional),
      (Optional<In>, bias2Optional), (Optional<In>, scaleOptional), (Optional<In>, offsetOptional),
      (Optional<In>, deqScale1Optional), (Optional<In>, deqScale2Optional),
      (Optional<In>, antiquantScale1Optional), (Optional<In>, antiquantScale2Optional),
      (Optional<In>, antiquantOffset1Optional), (Optional<In>, antiquantOffset2Optional),
      (const char*, activation), (int64_t, innerPrecise), (bool, tokensIndexFlag), (Out, y)) {
  const Layer layer = {x,
                       {weight1,
                        {"bias1Optional", bias1Optional},
                        {"deqScale1Optional", deqScale1Optional},
                        {"antiquantScale1Optional", antiquantScale1Optional},
                        {"antiquantOffset1Optional", antiquantOffset1Optional}},
                       {weight2,
                        {"bias2Optional", bias2Optional},
                        {"deqScale2Optional", deqScale2Optional},
                        {"antiquantScale2Optional", antiquantScale2Optional},
                        {"antiquantOffset2Optional", antiquantOffset2Optional}},
                       {"scaleOptional", scaleOptional},
                       {"offsetOptional", offsetOptional},
                       Activation(activation),
                       innerPrecise};
  if (!expertTokensOptional || expertTokensOptional->numel() == 0) {
    return write(layer, std::nullopt, tokensIndexFlag, y);
  }
  const at::Tensor& tokens = *expertTokensOptional;
  expect_dtype("expertTokensOptional", tokens, at::kLong);
  EXPECT(tokens.dim() == 1 && tokens.size(0) <= 256, "expertTokensOptional has shape ",
         tokens.sizes(), ", expected one dimension with at most 256 elements");
  expect_dims("x", x, 2, 8);
  write(layer, values_of(tokens, tokensIndexFlag, rows_of(x)), tokensIndexFlag, y);
}

ACLNN(FusedMatmulGelu, (Floating<In>, x), (SameDtype<Floating<In>>, weight, "x"),
      (SameDtype<Optional<In>>, bias, "x"), (int64_t, approximate), (SameDtype<Out>, y, "x")) {
  expect_one_of("approximate", approximate, {1}, " (by tanh)");
  EXPECT(x.dim() >= 2 && weight.dim() == 2 && x.size(-1) == weight.size(1) && weight.numel() > 0,
         "x has shape ", x.sizes(), " and weight has shape ", weight.sizes(),
         ", expected (..., K) and (N, K)");
  if (bias) expect_shape("bias", *bias, {weight.size(0)});
  y = tanh_gelu(at::linear(wide(x), wide(weight), wide(bias)));
}

// The weights of the layers are stored one after the other, each as (inputs, outputs), and so are
// the biases.
ACLNN(FusedPatchMlp, (Floating<In>, x), (SameDtype<Floating<In>>, weights, "x"),
      (Floating<In>, biases), (int64_t, numLayers), (SameDtype<Out>, out, "x")) {
  constexpr int64_t kLeastInputs = 16;
  constexpr int64_t kLeastBytes = 64;
  EXPECT(x.dim() >= 2 && x.size(-1) >= kLeastInputs, "x has shape ", x.sizes(),
         ", expected at least two dimensions, the last one at least ", kLeastInputs);
  expect_dims("weights", weights, 1);
  expect_dims("biases", biases, 1);
  expect_dtype("biases", biases, x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type());
  EXPECT(numLayers > 0 && biases.size(0) % numLayers.value() == 0, "numLayers is ", numLayers,
         ", expected a divisor of ", biases.size(0), ", the size of biases");
  const int64_t layers = numLayers;
  const int64_t inputs = x.size(-1);
  const int64_t outputs = biases.size(0) / layers;
  const int64_t least = kLeastBytes / x.element_size();
  EXPECT(outputs >= least, "biases has ", outputs, " elements for each layer, expected at least ",
         least, " as x has dtype ", x.scalar_type());
  const double expected = static_cast<double>(outputs) *
                          (static_cast<double>(inputs) +
                           static_cast<double>(layers - 1) * static_cast<double>(outputs));
  EXPECT(static_cast<double>(weights.size(0)) == expected, "weights has ", weights.size(0),
         " elements, expected ", expected);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = outputs;
  expect_shape("out", out, shape);
  at::Tensor hidden = wide(x).reshape({x.numel() / inputs, inputs});
  const at::Tensor all_weights = wide(weights);
  const at::Tensor all_biases = wide(biases);
  int64_t begin = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (layer > 0) hidden = tanh_gelu(hidden);
    const int64_t rows = hidden.size(1);
    const at::Tensor weight = all_weights.narrow(0, begin, rows * outputs).view({rows, outputs});
    const at::Tensor bias = all_biases.narrow(0, layer * outputs, outputs);
    hidden = at::addmm(bias, hidden, weight);
    begin += rows * outputs;
  }
  out = hidden.view(shape);
}

}  // namespace aclnn_host::matmul_feed_forward_rows
