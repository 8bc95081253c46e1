// A program that calls an operator in a loop: creates descriptors, runs stage 1 and stage 2, and
// destroys everything. After the first iterations none of this allocates memory from the C library.
#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "aclnnop/aclnn_selu.h"
#include "aclnnop/aclnn_selu_backward.h"
#include "check.h"
#include "client/call.h"

namespace {
thread_local int64_t allocations = 0;
}

// Replaces and counts the C library's allocation functions for everything that is linked or loaded.
// The sanitizers have their own functions; with them nothing is counted, and the calls run only for
// what the sanitizers detect.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#pragma GCC visibility push(default)
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  ++allocations;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#pragma GCC visibility pop

TEST(the_count_counts) {
  const int64_t before = allocations;
  std::free(std::malloc(8));
  CHECK_EQ(allocations - before, 1);
  // Libraries call the replacements, too.
  CHECK(dlsym(RTLD_DEFAULT, "malloc") == reinterpret_cast<void*>(&malloc));
  CHECK(dlsym(RTLD_DEFAULT, "posix_memalign") == reinterpret_cast<void*>(&posix_memalign));
}

#endif

namespace {

using namespace aclnn;

ACLNN_DECLARE(Convolution);
ACLNN_DECLARE(ConvolutionBackward);
ACLNN_DECLARE(Elu);
ACLNN_DECLARE(InplaceElu);
ACLNN_DECLARE(EluBackward);
ACLNN_DECLARE(Selu);
ACLNN_DECLARE(SeluBackward);
ACLNN_DECLARE(RmsNorm);
ACLNN_DECLARE(RmsNormGrad);
ACLNN_DECLARE(CrossEntropyLoss);
ACLNN_DECLARE(CrossEntropyLossGrad);

const Library& library() {
  static const Library library({"libopapi.so"});
  return library;
}

// Numbers of some shape, and new descriptors of them.
template <class T>
class Values {
 public:
  explicit Values(std::vector<int64_t> dims, T value = T{1}) : dims_(std::move(dims)) {
    size_t count = 1;
    for (const int64_t size : dims_) count *= static_cast<size_t>(size);
    values_.assign(count, value);
  }

  TensorHandle tensor() {
    return make_tensor(library(), dims_, kScalarType<T>, {}, 0, ACL_FORMAT_ND, dims_,
                       values_.data());
  }

 private:
  std::vector<int64_t> dims_;
  std::vector<T> values_;
};

template <class Op, class... Args>
void run(Args&&... args) {
  alignas(64) static char workspace[1 << 16];
  call<Op>(
      library(),
      [](uint64_t size) -> void* { return size <= sizeof(workspace) ? workspace : nullptr; },
      nullptr, std::forward<Args>(args)...);
}

// The number of allocations in a hundred iterations, after ten that fill the caches.
int64_t allocations_of(const std::function<void()>& turn) {
  for (int i = 0; i < 10; ++i) turn();
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) turn();
  return allocations - before;
}

const std::vector<std::vector<int64_t>> kShapes = {{16}, {2, 8}, {1, 2, 1, 2, 1, 2, 1, 2}};

}  // namespace

TEST(elementwise_operators_allocate_nothing) {
  for (const auto& shape : kShapes) {
    Values<float> x(shape), y(shape), z(shape);
    const auto one = [] { return make_scalar(library(), 1.0); };
    CHECK_EQ(allocations_of([&] { run<Elu>(x.tensor(), one(), one(), one(), y.tensor()); }), 0);
    CHECK_EQ(allocations_of([&] { run<InplaceElu>(x.tensor(), one(), one(), one()); }), 0);
    CHECK_EQ(allocations_of([&] {
               run<EluBackward>(x.tensor(), one(), one(), one(), false, y.tensor(), z.tensor());
             }),
             0);
    CHECK_EQ(allocations_of([&] { run<Selu>(x.tensor(), y.tensor()); }), 0);
    CHECK_EQ(allocations_of([&] { run<SeluBackward>(x.tensor(), y.tensor(), z.tensor()); }), 0);
  }
}

TEST(rms_norm_allocates_nothing) {
  Values<float> x({2, 8}), gamma({8}), y({2, 8}), rstd({2, 1}), dx({2, 8}), dgamma({8});
  CHECK_EQ(allocations_of(
               [&] { run<RmsNorm>(x.tensor(), gamma.tensor(), 1e-6, y.tensor(), rstd.tensor()); }),
           0);
  CHECK_EQ(allocations_of([&] {
             run<RmsNormGrad>(y.tensor(), x.tensor(), rstd.tensor(), gamma.tensor(), dx.tensor(),
                              dgamma.tensor());
           }),
           0);
}

TEST(cross_entropy_allocates_nothing) {
  Values<float> input({2, 8}), weight({8}), loss({1}), log_prob({2, 8}), none({0}), out({2, 8});
  Values<int64_t> target({2});
  char mean[] = "mean";
  CHECK_EQ(allocations_of([&] {
             run<CrossEntropyLoss>(input.tensor(), target.tensor(), weight.tensor(), +mean,
                                   int64_t{-100}, 0.0, 0.0, false, loss.tensor(), log_prob.tensor(),
                                   none.tensor(), none.tensor());
           }),
           0);
  CHECK_EQ(allocations_of([&] {
             run<CrossEntropyLossGrad>(loss.tensor(), log_prob.tensor(), target.tensor(),
                                       weight.tensor(), TensorHandle(), TensorHandle(), +mean,
                                       int64_t{-100}, 0.0, 0.0, out.tensor());
           }),
           0);
}

TEST(small_convolutions_allocate_nothing) {
  Values<float> input({2, 2, 7, 7}), weight({2, 2, 3, 3}), bias({2}), output({2, 2, 5, 5});
  Values<float> grad_input({2, 2, 7, 7}), grad_weight({2, 2, 3, 3}), grad_bias({2});
  const auto pair = [](int64_t value) {
    return make_int_array(library(), std::array{value, value});
  };
  const auto channels = [] { return make_int_array(library(), std::array{int64_t{2}}); };
  const auto all = [] { return make_bool_array(library(), std::array{true, true, true}); };
  CHECK_EQ(allocations_of([&] {
             run<Convolution>(input.tensor(), weight.tensor(), bias.tensor(), pair(1), pair(0),
                              pair(1), false, pair(0), int64_t{1}, output.tensor(), int8_t{0});
           }),
           0);
  CHECK_EQ(allocations_of([&] {
             run<ConvolutionBackward>(output.tensor(), input.tensor(), weight.tensor(), channels(),
                                      pair(1), pair(0), pair(1), false, pair(0), int{1}, all(),
                                      int8_t{0}, grad_input.tensor(), grad_weight.tensor(),
                                      grad_bias.tensor());
           }),
           0);
}

TEST(arrays_allocate_nothing) {
  const std::vector<int64_t> values(8, 1);
  CHECK_EQ(allocations_of([&] { make_int_array(library(), values); }), 0);
}

TEST(an_executor_that_is_never_launched_allocates_nothing) {
  Values<float> x({16}), y({16});
  CHECK_EQ(allocations_of([&] { prepare<Selu>(library(), x.tensor(), y.tensor()); }), 0);
}
