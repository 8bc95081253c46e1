// Feed-forward layers, for all tokens or for those of each expert. Products are summed in FP32, and
// what lies between the two is not rounded. Quantised ones are refused.

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

using Optional = std::optional<at::Tensor>;

void refuse_quantisation(std::initializer_list<std::pair<const char*, const Optional*>> given) {
  for (const auto& [name, tensor] : given) {
    TORCH_CHECK(!*tensor, name,
                " is a tensor, expected null; the host CANN does not emulate "
                "quantised layers");
  }
}

void check(const char* name, const at::Tensor& tensor, at::IntArrayRef shape,
           at::ScalarType dtype) {
  expect_dtype(name, tensor, dtype);
  TORCH_CHECK(tensor.sizes() == shape, name, " has shape ", tensor.sizes(), ", expected ", shape);
}

// An activation by its name, in whatever case.
class Activation {
 public:
  explicit Activation(const std::string& name) {
    for (const char letter : name) {
      const bool is_capital = letter >= 'A' && letter <= 'Z';
      name_ += is_capital ? static_cast<char>(letter - 'A' + 'a') : letter;
    }
    const bool is_known =
        is_gated() || name_ == "fastgelu" || name_ == "relu" || name_ == "silu" || name_ == "gelu";
    TORCH_CHECK(is_known, "activation is \"", name,
                "\", expected \"fastgelu\", \"gelu\", \"relu\", \"silu\", \"geglu\", \"swiglu\" or "
                "\"reglu\"");
  }
  // Whether it multiplies one half of a row by the other.
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

// The layer's arguments but for the experts.
struct Layer {
  const at::Tensor& x;
  const at::Tensor& weight1;
  const at::Tensor& weight2;
  const Optional& bias1;
  const Optional& bias2;
  const Activation activation;
  int64_t precise;

  // With as many experts as given; without experts there are no dimensions for them.
  void check_with(std::optional<int64_t> experts, const at::Tensor& y) const {
    TORCH_CHECK(x.dim() >= 2 && x.dim() <= 8, "x has ", x.dim(), " dimensions, expected 2 to 8");
    TORCH_CHECK(!activation.is_gated(),
                "activation is a gated one, expected \"fastgelu\", \"gelu\", \"relu\" or \"silu\"; "
                "the host CANN does not emulate the others");
    TORCH_CHECK(precise == 0 || precise == 1, "innerPrecise is ", precise, ", expected 0 or 1");
    TORCH_CHECK(precise == 0 || x.scalar_type() != at::kBFloat16, "innerPrecise is ", precise,
                ", expected 0 because x is BFLOAT16");
    const int64_t dims = experts ? 3 : 2;
    TORCH_CHECK(weight1.dim() == dims, "weight1 has ", weight1.dim(), " dimensions, expected ",
                dims);
    const int64_t inner = weight1.size(-1);
    std::vector<int64_t> shape1{x.size(-1), inner}, shape2{inner, x.size(-1)};
    std::vector<int64_t> of_bias1{inner}, of_bias2{x.size(-1)};
    if (experts) {
      for (auto* shape : {&shape1, &shape2, &of_bias1, &of_bias2}) {
        shape->insert(shape->begin(), *experts);
      }
    }
    TORCH_CHECK(inner < 65536 && x.size(-1) < 65536, "weight1 has shape ", weight1.sizes(),
                ", expected rows and columns of less than 65536");
    check("weight1", weight1, shape1, x.scalar_type());
    check("weight2", weight2, shape2, x.scalar_type());
    // Beside BFLOAT16 the document has FLOAT.
    const bool is_wide = x.scalar_type() == at::kBFloat16;
    const at::ScalarType of_bias = is_wide ? at::kFloat : x.scalar_type();
    if (bias1) check("bias1", *bias1, of_bias1, of_bias);
    if (bias2) check("bias2", *bias2, of_bias2, of_bias);
    check("y", y, x.sizes(), x.scalar_type());
  }

  // The results for some rows with weights of their own.
  at::Tensor run(const at::Tensor& rows, const at::Tensor& first, const at::Tensor& second,
                 const Optional& bias_first, const Optional& bias_second) const {
    const auto product = [](const at::Tensor& a, const at::Tensor& b, const Optional& bias) {
      return bias ? at::addmm(wide(*bias), a, wide(b)) : at::mm(a, wide(b));
    };
    return product(activation(product(wide(rows), first, bias_first)), second, bias_second);
  }

  at::Tensor run() const {
    return run(x.flatten(0, -2), weight1, weight2, bias1, bias2).reshape(x.sizes());
  }
  // Each expert takes so many rows.
  at::Tensor run(const std::vector<int64_t>& counts) const {
    const at::Tensor rows = x.flatten(0, -2);
    std::vector<at::Tensor> results;
    int64_t first = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto expert = static_cast<int64_t>(i);
      const auto of_expert = [expert](const Optional& bias) {
        return bias ? Optional(bias->select(0, expert)) : std::nullopt;
      };
      results.push_back(run(rows.narrow(0, first, counts[i]), weight1.select(0, expert),
                            weight2.select(0, expert), of_expert(bias1), of_expert(bias2)));
      first += counts[i];
    }
    return at::cat(results, 0).reshape(x.sizes());
  }
};

// How many rows each expert takes, by their numbers or, with `are_ends`, by where they end.
std::vector<int64_t> counts_of(at::IntArrayRef tokens, bool are_ends, int64_t rows) {
  std::vector<int64_t> counts;
  int64_t sum = 0;
  for (const int64_t value : tokens) {
    const int64_t most = rows - sum;
    TORCH_CHECK(value >= (are_ends ? sum : 0) && value <= (are_ends ? rows : most),
                "expertTokens has the value ", value, ", expected ", are_ends ? "ends" : "numbers",
                " of the ", rows, " rows of x");
    counts.push_back(are_ends ? value - sum : value);
    sum += counts.back();
  }
  TORCH_CHECK(sum == rows, "expertTokens covers ", sum, " rows, expected ", rows, " as x has");
  return counts;
}

int64_t rows_of(const at::Tensor& x) {
  return x.flatten(0, -2).size(0);
}

void run(const Layer& layer, const at::OptionalIntArrayRef& tokens, bool are_ends, Output& y) {
  if (!tokens) {
    layer.check_with(std::nullopt, y);
    y = layer.run();
    return;
  }
  TORCH_CHECK(!tokens->empty() && tokens->size() <= 256, "expertTokens has ", tokens->size(),
              " values, expected 1 to 256");
  layer.check_with(static_cast<int64_t>(tokens->size()), y);
  y = layer.run(counts_of(*tokens, are_ends, rows_of(layer.x)));
}

// The values of a tensor on the device. In stage 1, where they are unknown, the first expert gets
// all rows.
std::vector<int64_t> values_of(const at::Tensor& tokens, bool are_ends, int64_t rows) {
  std::vector<int64_t> values(static_cast<size_t>(tokens.size(0)), are_ends ? rows : 0);
  values[0] = rows;
  if (!tokens.is_cpu() || is_rehearsed()) return values;
  const at::Tensor known = tokens.to(at::kLong).contiguous();
  const int64_t* data = known.const_data_ptr<int64_t>();
  values.assign(data, data + known.numel());
  return values;
}

at::Tensor tanh_gelu(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}

}  // namespace

ACLNN(FFN, (FloatIn, x), (FloatIn, weight1), (FloatIn, weight2), (OptionalInts, expertTokens),
      (OptionalIn, bias1), (OptionalIn, bias2), (OptionalIn, scale), (OptionalIn, offset),
      (OptionalIn, deqScale1), (OptionalIn, deqScale2), (OptionalIn, antiquantScale1),
      (OptionalIn, antiquantScale2), (OptionalIn, antiquantOffset1), (OptionalIn, antiquantOffset2),
      (const char*, activation), (int64_t, innerPrecise), (Out, y)) {
  refuse_quantisation({{"scale", &scale},
                       {"offset", &offset},
                       {"deqScale1", &deqScale1},
                       {"deqScale2", &deqScale2},
                       {"antiquantScale1", &antiquantScale1},
                       {"antiquantScale2", &antiquantScale2},
                       {"antiquantOffset1", &antiquantOffset1},
                       {"antiquantOffset2", &antiquantOffset2}});
  run({x, weight1, weight2, bias1, bias2, Activation(activation), innerPrecise}, expertTokens,
      /*are_ends=*/false, y);
}
ACLNN(FFNV2, (FloatIn, x), (FloatIn, weight1), (FloatIn, weight2), (OptionalInts, expertTokens),
      (OptionalIn, bias1), (OptionalIn, bias2), (OptionalIn, scale), (OptionalIn, offset),
      (OptionalIn, deqScale1), (OptionalIn, deqScale2), (OptionalIn, antiquantScale1),
      (OptionalIn, antiquantScale2), (OptionalIn, antiquantOffset1), (OptionalIn, antiquantOffset2),
      (const char*, activation), (int64_t, innerPrecise), (bool, tokensIndexFlag), (Out, y)) {
  refuse_quantisation({{"scale", &scale},
                       {"offset", &offset},
                       {"deqScale1", &deqScale1},
                       {"deqScale2", &deqScale2},
                       {"antiquantScale1", &antiquantScale1},
                       {"antiquantScale2", &antiquantScale2},
                       {"antiquantOffset1", &antiquantOffset1},
                       {"antiquantOffset2", &antiquantOffset2}});
  run({x, weight1, weight2, bias1, bias2, Activation(activation), innerPrecise}, expertTokens,
      tokensIndexFlag, y);
}
ACLNN(FFNV3, (FloatIn, x), (FloatIn, weight1), (FloatIn, weight2),
      (OptionalIn, expertTokensOptional), (OptionalIn, bias1Optional), (OptionalIn, bias2Optional),
      (OptionalIn, scaleOptional), (OptionalIn, offsetOptional), (OptionalIn, deqScale1Optional),
      (OptionalIn, deqScale2Optional), (OptionalIn, antiquantScale1Optional),
      (OptionalIn, antiquantScale2Optional), (OptionalIn, antiquantOffset1Optional),
      (OptionalIn, antiquantOffset2Optional), (const char*, activation), (int64_t, innerPrecise),
      (bool, tokensIndexFlag), (Out, y)) {
  refuse_quantisation({{"scaleOptional", &scaleOptional},
                       {"offsetOptional", &offsetOptional},
                       {"deqScale1Optional", &deqScale1Optional},
                       {"deqScale2Optional", &deqScale2Optional},
                       {"antiquantScale1Optional", &antiquantScale1Optional},
                       {"antiquantScale2Optional", &antiquantScale2Optional},
                       {"antiquantOffset1Optional", &antiquantOffset1Optional},
                       {"antiquantOffset2Optional", &antiquantOffset2Optional}});
  const Layer layer{
      x, weight1, weight2, bias1Optional, bias2Optional, Activation(activation), innerPrecise};
  if (!expertTokensOptional) return run(layer, std::nullopt, tokensIndexFlag, y);
  const at::Tensor& tokens = *expertTokensOptional;
  expect_dtype("expertTokensOptional", tokens, at::kLong);
  TORCH_CHECK(tokens.dim() == 1 && tokens.size(0) > 0 && tokens.size(0) <= 256,
              "expertTokensOptional has shape ", tokens.sizes(),
              ", expected one dimension with 1 to 256 elements");
  TORCH_CHECK(x.dim() >= 2, "x has ", x.dim(), " dimensions, expected 2 to 8");
  run(layer, values_of(tokens, tokensIndexFlag, rows_of(x)), tokensIndexFlag, y);
}

ACLNN(FusedMatmulGelu, (FloatIn, x), (FloatIn, weight), (OptionalIn, bias), (int64_t, approximate),
      (Out, y)) {
  TORCH_CHECK(approximate == 1, "approximate is ", approximate, ", expected 1 (by tanh)");
  TORCH_CHECK(
      x.dim() >= 2 && weight.dim() == 2 && x.size(-1) == weight.size(1) && weight.numel() > 0,
      "x has shape ", x.sizes(), " and weight has shape ", weight.sizes(),
      ", expected (..., K) and (N, K)");
  expect_dtype("weight", weight, x);
  expect_dtype(y, x);
  if (bias) {
    expect_dtype("bias", *bias, x);
    expect_shape("bias", *bias, {weight.size(0)});
  }
  y = tanh_gelu(at::linear(wide(x), wide(weight), wide(bias)));
}

// The weights of the layers lie one after the other, each as (inputs, outputs), and so do the
// biases.
ACLNN(FusedPatchMlp, (FloatIn, x), (FloatIn, weights), (FloatIn, biases), (int64_t, numLayers),
      (Out, out)) {
  constexpr int64_t kLeastInputs = 16;
  constexpr int64_t kLeastBytes = 64;
  TORCH_CHECK(x.dim() >= 2 && x.size(-1) >= kLeastInputs, "x has shape ", x.sizes(),
              ", expected at least two dimensions, the last one at least ", kLeastInputs);
  expect_dims("weights", weights, 1);
  expect_dims("biases", biases, 1);
  expect_dtype("weights", weights, x);
  expect_dtype("biases", biases, x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type());
  expect_dtype(out, x);
  TORCH_CHECK(numLayers > 0 && biases.size(0) % numLayers.value() == 0, "numLayers is ", numLayers,
              ", expected a divisor of ", biases.size(0), ", the size of biases");
  const int64_t layers = numLayers;
  const int64_t inputs = x.size(-1);
  const int64_t outputs = biases.size(0) / layers;
  TORCH_CHECK(outputs * x.element_size() >= kLeastBytes, "biases has ", outputs,
              " elements for each layer, expected at least ", kLeastBytes,
              " bytes of the dtype of ", "x");
  const double expected = static_cast<double>(outputs) *
                          (static_cast<double>(inputs) +
                           static_cast<double>(layers - 1) * static_cast<double>(outputs));
  TORCH_CHECK(static_cast<double>(weights.size(0)) == expected, "weights has ", weights.size(0),
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
