#include "operators.h"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "aclnnop/aclnn_host_linear_cross_entropy.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "elementwise_functions.h"

namespace reliability {

using namespace aclnn;

#define DECLARE_ELEMENTWISE(name) ACLNN_DECLARE(name);
ELEMENTWISE_FUNCTIONS(DECLARE_ELEMENTWISE)
#undef DECLARE_ELEMENTWISE
ACLNN_DECLARE(Convolution);
ACLNN_DECLARE(ConvolutionBackward);
ACLNN_DECLARE(CrossEntropyLoss);
ACLNN_DECLARE(CrossEntropyLossGrad);
ACLNN_DECLARE(FusedCrossEntropyLossWithMaxSum);
ACLNN_DECLARE(FusedLinearCrossEntropyLossGrad);
ACLNN_DECLARE(FusedLinearOnlineMaxSum);
ACLNN_DECLARE(HostLinearCrossEntropy);
ACLNN_DECLARE(LayerNorm);
ACLNN_DECLARE(LayerNormBackward);
ACLNN_DECLARE(RmsNorm);
ACLNN_DECLARE(RmsNormGrad);

const Library& library() {
  static const Library library({"libopapi.so"});
  return library;
}

namespace {

// A tensor's numbers, which live as long as the call that uses them.
template <class T>
struct Numbers {
  std::vector<int64_t> dims;
  std::shared_ptr<std::vector<T>> values;

  TensorHandle operator()() const {
    return make_tensor(library(), dims, kScalarType<T>, {}, 0, ACL_FORMAT_ND, dims, values->data());
  }
};

// An argument that is passed unchanged.
template <class T>
auto value(T given) {
  return [given] { return given; };
}

class Calls {
 public:
  std::vector<Call> all() {
    auto x = input({4, 24});
    auto y = input({4, 24});
    auto row = input({24});
#define ADD_ELEMENTWISE(name) \
  add_elementwise<name>(#name, std::make_index_sequence<detail::Prototype<name::Stage1>::kCount>());
    ELEMENTWISE_FUNCTIONS(ADD_ELEMENTWISE)
#undef ADD_ELEMENTWISE
    add<GeluBackward>("GeluBackward (broadcast)", x, row, output({4, 24}));

    auto gamma = input({24});
    auto rstd = input({4, 1});
    add<RmsNorm>("RmsNorm", x, gamma, value(1e-6), output({4, 24}), output({4, 1}));
    add<RmsNormGrad>("RmsNormGrad", x, y, rstd, gamma, output({4, 24}), output({24}));
    const auto inner = [] { return make_int_array(library(), std::array{int64_t{24}}); };
    const auto mask = [] { return make_bool_array(library(), std::array{true, true, true}); };
    add<LayerNorm>("LayerNorm", x, inner, gamma, gamma, value(1e-5), output({4, 24}),
                   output({4, 1}), output({4, 1}));
    add<LayerNormBackward>("LayerNormBackward", x, y, inner, rstd, rstd, gamma, gamma, mask,
                           output({4, 24}), output({24}), output({24}));

    const Numbers<int64_t> target{{4}, make<int64_t>({0, 23, 5, 5})};
    const auto none = [] { return TensorHandle(); };
    add<CrossEntropyLoss>("CrossEntropyLoss", x, target, gamma, value(mean_), value(int64_t{-100}),
                          value(0.0), value(0.0), value(false), output({1}), output({4, 24}),
                          output({0}), output({0}));
    add<CrossEntropyLossGrad>("CrossEntropyLossGrad", input({1}), x, target, gamma, none, none,
                              value(mean_), value(int64_t{-100}), value(0.0), value(0.0),
                              output({4, 24}));
    add_linear_cross_entropy(none);
    add_convolutions(" (direct)", {2, 2, 7, 7}, {2, 2, 3, 3}, {2, 2, 5, 5});
    add_convolutions(" (products)", {2, 16, 19, 19}, {32, 16, 3, 3}, {2, 32, 17, 17});
    return std::move(calls_);
  }

 private:
  struct alignas(64) CacheLine {
    char bytes[64];
  };

  template <class T>
  static std::shared_ptr<std::vector<T>> make(std::vector<T> values) {
    return std::make_shared<std::vector<T>>(std::move(values));
  }

  // Different numbers, some of them negative.
  static Numbers<float> input(std::vector<int64_t> dims) {
    size_t count = 1;
    for (const int64_t size : dims) count *= static_cast<size_t>(size);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7 % 13) / 4 - 1.25f;
    return {std::move(dims), make(std::move(values))};
  }

  Numbers<float> output(std::vector<int64_t> dims) {
    outputs_.push_back(input(std::move(dims)));
    return outputs_.back();
  }

  // The call of an elementwise function, which writes its last tensor.
  template <class Op, size_t... I>
  void add_elementwise(const char* name, std::index_sequence<I...>) {
    using Prototype = detail::Prototype<typename Op::Stage1>;
    size_t last = 0;
    ((kIsTensor<typename Prototype::template Parameter<I>> ? last = I : last), ...);
    add<Op>(name, elementwise_argument<typename Prototype::template Parameter<I>>(I == last)...);
  }

  template <class P>
  static constexpr bool kIsTensor = std::is_convertible_v<P, const aclTensor*>;

  template <class P>
  auto elementwise_argument(bool is_output) {
    if constexpr (kIsTensor<P>) {
      return is_output ? output({4, 24}) : input({4, 24});
    } else if constexpr (std::is_same_v<P, const aclScalar*>) {
      return [] { return make_scalar(library(), 1.5); };
    } else if constexpr (std::is_same_v<P, char*>) {
      return value(none_);
    } else {
      return value(P{});  // a bool or an integer
    }
  }

  template <class Op, class... Make>
  void add(std::string name, Make... arguments) {
    struct State {
      std::vector<CacheLine> workspace;
      std::vector<Numbers<float>> outputs;
      std::vector<std::vector<float>> first;
    };
    const auto state = std::make_shared<State>();
    state->outputs = std::move(outputs_);
    outputs_.clear();
    for (const auto& output : state->outputs) state->first.push_back(*output.values);

    const auto reset = [state] {
      for (size_t i = 0; i < state->first.size(); ++i) {
        std::copy(state->first[i].begin(), state->first[i].end(),
                  state->outputs[i].values->begin());
      }
    };
    const auto allocate = [state](uint64_t size) -> void* {
      const size_t lines = size / sizeof(CacheLine) + 1;
      if (state->workspace.size() < lines) state->workspace.resize(lines);
      return state->workspace.data();
    };
    Call call;
    call.name = std::move(name);
    call.launch = [=](aclrtStream stream) {
      reset();
      aclnn::call<Op>(library(), allocate, stream, arguments()...);
    };
    call.prepare = [=]() -> std::function<void(aclrtStream)> {
      reset();
      using Prepared = decltype(aclnn::prepare<Op>(library(), arguments()...));
      const auto prepared =
          std::make_shared<Prepared>(aclnn::prepare<Op>(library(), arguments()...));
      return [=](aclrtStream stream) {
        const uint64_t size = prepared->workspace_size();
        prepared->launch(size > 0 ? allocate(size) : nullptr, stream);
      };
    };
    call.results = [state] {
      std::vector<float> results;
      for (const auto& output : state->outputs) {
        results.insert(results.end(), output.values->begin(), output.values->end());
      }
      return results;
    };
    calls_.push_back(std::move(call));
  }

  // Memory as FLOAT16; the halves of these FLOATs are finite.
  static auto as_half(Numbers<float> numbers) {
    return [numbers] {
      return make_tensor(library(), numbers.dims, ACL_FLOAT16, {}, 0, ACL_FORMAT_ND, numbers.dims,
                         numbers.values->data());
    };
  }

  // For two blocks of classes.
  template <class None>
  void add_linear_cross_entropy(None none) {
    constexpr int64_t kRows = 5, kClasses = 530, kDepth = 24;
    const auto rows = input({kRows, kDepth});
    const auto weight = input({kClasses, kDepth});
    const auto of_rows = input({kRows});
    const Numbers<float> sums{{kRows}, make<float>({1, 2.5f, 3, 40, 5})};
    const Numbers<int64_t> target{{kRows}, make<int64_t>({0, kClasses - 1, 5, 5, 7})};
    const Numbers<int64_t> places{{kRows}, make<int64_t>({0, 0, 0, 0, 0})};
    const Numbers<uint8_t> mask{{1}, make<uint8_t>({2})};
    const Numbers<uint8_t> written_mask{{1}, make<uint8_t>({0})};
    add<FusedLinearOnlineMaxSum>("FusedLinearOnlineMaxSum", as_half(rows), as_half(weight), target,
                                 value(int64_t{0}), value(kClasses), output({kRows}),
                                 output({kRows}), output({kRows}), written_mask, places, none);
    add<FusedCrossEntropyLossWithMaxSum>("FusedCrossEntropyLossWithMaxSum", of_rows, sums, of_rows,
                                         value(0.0f), none, none, rows, output({kRows}),
                                         output({kRows, kDepth}));
    add<FusedLinearCrossEntropyLossGrad>("FusedLinearCrossEntropyLossGrad", of_rows, as_half(rows),
                                         as_half(weight), mask, target, value(0.0f), of_rows, sums,
                                         none, as_half(output({kRows, kDepth})),
                                         as_half(output({kClasses, kDepth})));
    add<HostLinearCrossEntropy>(
        "HostLinearCrossEntropy", rows, weight, input({kClasses}), target, none, of_rows, none,
        value(int64_t{-100}), value(0.125), value(int64_t{0}), value(int64_t{0}), output({kRows}),
        output({kRows}), output({kRows, kDepth}), output({kClasses, kDepth}), output({kClasses}));
  }

  void add_convolutions(const std::string& kind, const std::vector<int64_t>& in,
                        const std::vector<int64_t>& kernel, const std::vector<int64_t>& out) {
    const auto pair = [](int64_t number) {
      return [number] { return make_int_array(library(), std::array{number, number}); };
    };
    const auto channels = [count = kernel[0]] {
      return make_int_array(library(), std::array{count});
    };
    const auto all = [] { return make_bool_array(library(), std::array{true, true, true}); };
    add<Convolution>("Convolution" + kind, input(in), input(kernel), input({kernel[0]}), pair(1),
                     pair(0), pair(1), value(false), pair(0), value(int64_t{1}), output(out),
                     value(int8_t{0}));
    add<ConvolutionBackward>("ConvolutionBackward" + kind, input(out), input(in), input(kernel),
                             channels, pair(1), pair(0), pair(1), value(false), pair(0), value(1),
                             all, value(int8_t{0}), output(in), output(kernel),
                             output({kernel[0]}));
  }

  static inline char mean_text_[] = "mean";
  static inline char* const mean_ = mean_text_;
  static inline char none_text_[] = "none";
  static inline char* const none_ = none_text_;
  std::vector<Numbers<float>> outputs_;  // of the call being added
  std::vector<Call> calls_;
};

}  // namespace

std::vector<Call> all_calls() {
  return Calls().all();
}

}  // namespace reliability
