#include "fuzz/run.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "acl/acl.h"
#include "acl/acl_host.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace fuzz {
namespace {

constexpr size_t kRedZone = 64;
constexpr uint8_t kPattern = 0xA5;
// Larger calls end after stage 1.
constexpr int64_t kMostBytes = 1 << 20;
constexpr int64_t kMostElements = 1 << 13;
constexpr int64_t kMostProducts = 1 << 24;

void require(bool condition, const char* what, const std::string& text = "") {
  if (condition) return;
  std::fprintf(stderr, "WRONG: %s %s\n", what, text.c_str());
  std::abort();
}

// Memory between two red zones, all of it filled with a pattern at first.
class Buffer {
 public:
  explicit Buffer(size_t size)
      : size_(size), all_(static_cast<uint8_t*>(std::aligned_alloc(64, whole(size)))) {
    require(all_ != nullptr, "out of memory");
    std::memset(all_.get(), kPattern, whole(size));
    close_zones();
  }
  ~Buffer() { open_zones(); }

  uint8_t* data() const { return all_.get() + kRedZone; }
  size_t size() const { return size_; }
  void keep() { before_.assign(data(), data() + size_); }
  // True if only bytes flagged in `written`, those of an output, have changed; `written` may be
  // empty.
  bool intact(const std::vector<bool>& written) const {
    for (size_t i = 0; i < size_; ++i) {
      if (data()[i] != before_[i] && !(i < written.size() && written[i])) return false;
    }
    return zones_intact();
  }
  bool zones_intact() const {
    const auto is_pattern = [](uint8_t byte) { return byte == kPattern; };
    open_zones();
    const bool intact = std::all_of(all_.get(), data(), is_pattern) &&
                        std::all_of(data() + size_, all_.get() + whole(size_), is_pattern);
    close_zones();
    return intact;
  }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  // With AddressSanitizer, reads of the red zones are errors, too.
  void close_zones() const {
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(all_.get(), kRedZone);
    __asan_poison_memory_region(data() + size_, whole(size_) - kRedZone - size_);
#endif
  }
  void open_zones() const {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(all_.get(), whole(size_));
#endif
  }
  static size_t whole(size_t size) { return (size + 63) / 64 * 64 + 2 * kRedZone; }

  size_t size_;
  std::unique_ptr<uint8_t, Free> all_;
  std::vector<uint8_t> before_;
};

// An address without access: stage 1 does not read, and cases that are too large are not computed.
void* no_memory() {
  static void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page;
}

size_t size_of(aclDataType dtype) {
  return std::max<size_t>(aclDataTypeSize(dtype), 1);
}

// Calls body with the position in the storage of every element of a view.
template <class Body>
void for_each_position(const Tensor& tensor, Body body) {
  const int64_t count = tensor.elements().value();
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = tensor.offset;
    int64_t rest = i;
    for (size_t d = tensor.shape.size(); d-- > 0;) {
      position += rest % tensor.shape[d] * tensor.strides[d];
      rest /= tensor.shape[d];
    }
    body(position);
  }
}

// Fills a tensor as the case says: zeros, random bits, small numbers of both signs, or labels of
// which some are out of range.
void fill(const Tensor& tensor, Buffer& buffer) {
  constexpr std::array<int64_t, 4> kStrange = {-100, -1, 9, int64_t{1} << 40};
  const size_t item = size_of(tensor.dtype);
  uint64_t state = tensor.values * 0x9E3779B97F4A7C15u + 1;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  for (size_t at = 0; at + item <= buffer.size(); at += item) {
    uint8_t bytes[16] = {};
    const uint64_t bits = next();
    const bool strange = tensor.values % 4 == 3 && bits % 8 == 0;
    const int64_t label = strange ? kStrange[bits / 8 % kStrange.size()] : bits % 3;
    const auto small = static_cast<float>(static_cast<int>(bits % 17) - 8) / 4;
    const auto put = [&](auto value) { std::memcpy(bytes, &value, sizeof(value)); };
    if (tensor.values % 4 == 1) {
      for (size_t i = 0; i < item; i += 8) {
        const uint64_t more = next();
        std::memcpy(bytes + i, &more, 8);
      }
      if (tensor.dtype == ACL_BOOL) bytes[0] &= 1;
    } else if (tensor.values % 4 >= 2) {
      switch (tensor.dtype) {
        case ACL_FLOAT: put(small); break;
        case ACL_DOUBLE: put(static_cast<double>(small)); break;
        case ACL_FLOAT16:
        case ACL_BF16: put(static_cast<uint16_t>(0x3C00 | (bits & 0x83FF))); break;
        case ACL_INT32: put(static_cast<int32_t>(label)); break;
        case ACL_INT64: put(label); break;
        default: bytes[0] = static_cast<uint8_t>(label & 1);
      }
    }
    std::memcpy(buffer.data() + at, bytes, item);
  }
}

// A case's memory and descriptors.
class Objects {
 public:
  Objects(const Function& function, Case& call) : function_(function), call_(call) {
    buffers_.resize(call.arguments.size());
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      given_.push_back({&call.arguments[i], create(i)});
    }
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (buffers_[i]) buffers_[i]->keep();
      read_labels(i);
    }
  }
  ~Objects() {
    for (const Given& given : given_) {
      switch (given.argument->kind) {
        case Kind::kTensor: aclDestroyTensor(static_cast<aclTensor*>(given.object)); break;
        case Kind::kScalar: aclDestroyScalar(static_cast<aclScalar*>(given.object)); break;
        case Kind::kInts: aclDestroyIntArray(static_cast<aclIntArray*>(given.object)); break;
        case Kind::kBools: aclDestroyBoolArray(static_cast<aclBoolArray*>(given.object)); break;
        default: break;
      }
    }
  }
  Objects(const Objects&) = delete;

  const std::vector<Given>& given() const { return given_; }
  bool computable() const { return computable_ && products() <= kMostProducts; }

  // Checks that only elements of outputs were written, or nothing at all.
  void check(bool outputs_too) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i] == nullptr) continue;
      std::vector<bool> written;
      for (const size_t output : function_.outputs) {
        if (outputs_too && buffers_[output] == buffers_[i]) mark(output, written);
      }
      require(buffers_[i]->intact(written), "memory was written of argument", std::to_string(i));
    }
  }

 private:
  void* create(size_t i) {
    Argument& argument = call_.arguments[i];
    if (argument.null) return nullptr;
    void* object = nullptr;
    switch (argument.kind) {
      case Kind::kTensor: object = create_tensor(i); break;
      case Kind::kScalar: object = create_scalar(argument); break;
      case Kind::kInts:
        object = aclCreateIntArray(argument.integers.data(), argument.integers.size());
        break;
      case Kind::kBools: {
        bool values[8];
        std::copy(argument.integers.begin(), argument.integers.end(), values);
        object = aclCreateBoolArray(values, argument.integers.size());
        break;
      }
      case Kind::kText: return argument.text.data();
      default: return nullptr;
    }
    argument.null = object == nullptr;
    return object;
  }

  // Replaces the value in the case by the stored one, as a float.
  void* create_scalar(Argument& argument) {
    alignas(16) uint8_t bytes[16] = {};
    const auto put = [&](auto stored) {
      std::memcpy(bytes, &stored, sizeof(stored));
      argument.real = static_cast<float>(stored);
    };
    const double value = argument.real;
    switch (argument.dtype) {
      case ACL_FLOAT:
      case ACL_COMPLEX64: put(static_cast<float>(value)); break;
      case ACL_DOUBLE:
      case ACL_COMPLEX128: put(value); break;
      case ACL_FLOAT16: {
        const aclFloat16 half = aclFloatToFloat16(static_cast<float>(value));
        std::memcpy(bytes, &half, sizeof(half));
        argument.real = aclFloat16ToFloat(half);
        break;
      }
      case ACL_BF16: {  // the upper half of a float
        put(static_cast<float>(value));
        std::memcpy(bytes, bytes + 2, 2);
        break;
      }
      default: put(static_cast<uint8_t>(std::fabs(value) >= 1)); break;  // 1 and 0 of any integer
    }
    return aclCreateScalar(bytes, argument.dtype);
  }

  void* create_tensor(size_t i) {
    const Tensor& tensor = call_.arguments[i].tensor;
    const auto extent = tensor.extent();
    const int64_t count = tensor.elements().value_or(kMostElements + 1);
    const int64_t declared = tensor.declared().value_or(-1);
    const auto item = static_cast<int64_t>(size_of(tensor.dtype));
    // The declared storage; if it is too large, the range that the view reaches.
    int64_t elements = declared;
    if (declared > kMostBytes / item) {
      elements = extent ? std::min(extent->last, kMostBytes) + 1 : 0;
    }
    void* address = no_memory();
    if (tensor.no_data) {
      address = nullptr;
    } else if (elements >= 0 && elements <= kMostBytes / item) {
      std::shared_ptr<Buffer> shared = tensor.shares ? first() : nullptr;
      const auto bytes = static_cast<size_t>(elements * item);
      buffers_[i] = shared && shared->size() >= bytes ? shared : std::make_shared<Buffer>(bytes);
      if (buffers_[i] != shared) fill(tensor, *buffers_[i]);
      address = buffers_[i]->data();
    }
    const bool reachable = count == 0 || tensor.no_data || buffers_[i] != nullptr;
    computable_ = computable_ && reachable && count <= kMostElements;
    return aclCreateTensor(tensor.shape.data(), tensor.shape.size(), tensor.dtype,
                           tensor.no_strides ? nullptr : tensor.strides.data(), tensor.offset,
                           tensor.format, tensor.storage.data(), tensor.storage.size(), address);
  }

  std::shared_ptr<Buffer> first() const {
    for (const auto& buffer : buffers_) {
      if (buffer) return buffer;
    }
    return nullptr;
  }

  bool within(size_t i) const {
    const Tensor& tensor = call_.arguments[i].tensor;
    const auto extent = tensor.extent();
    const auto item = static_cast<int64_t>(size_of(tensor.dtype));
    return buffers_[i] && extent && extent->first >= 0 &&
           extent->last < static_cast<int64_t>(buffers_[i]->size()) / item;
  }

  void read_labels(size_t i) {
    constexpr int64_t kMostLabels = 64;
    Tensor& tensor = call_.arguments[i].tensor;
    const bool integers = tensor.dtype == ACL_INT32 || tensor.dtype == ACL_INT64;
    if (!integers || !within(i) || *tensor.elements() > kMostLabels) return;
    for_each_position(tensor, [&](int64_t position) {
      int64_t label = 0;
      const size_t item = size_of(tensor.dtype);
      std::memcpy(&label, buffers_[i]->data() + position * static_cast<int64_t>(item), item);
      tensor.labels.push_back(item == 4 ? static_cast<int32_t>(label) : label);
    });
  }

  void mark(size_t i, std::vector<bool>& written) const {
    if (!within(i)) return;
    const size_t item = size_of(call_.arguments[i].tensor.dtype);
    written.resize(buffers_[i]->size());
    for_each_position(call_.arguments[i].tensor, [&](int64_t position) {
      std::fill_n(written.begin() + position * static_cast<int64_t>(item), item, true);
    });
  }

  // A bound for the work of an operator: the product of the sizes of the two largest tensors.
  int64_t products() const {
    int64_t most[2] = {1, 1};
    for (const Argument& argument : call_.arguments) {
      if (argument.kind != Kind::kTensor || argument.null) continue;
      const int64_t count = std::min(argument.tensor.elements().value_or(0), kMostElements + 1);
      if (count > most[0]) {
        most[1] = std::exchange(most[0], count);
      } else {
        most[1] = std::max(most[1], count);
      }
    }
    return most[0] * most[1];
  }

  const Function& function_;
  Case& call_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<Given> given_;
  bool computable_ = true;
};

bool is_known(aclnnStatus status) {
  constexpr aclnnStatus kKnown[] = {OK,
                                    ACLNN_ERR_PARAM_NULLPTR,
                                    ACLNN_ERR_PARAM_INVALID,
                                    ACLNN_ERR_RUNTIME_ERROR,
                                    ACLNN_ERR_INNER,
                                    ACLNN_ERR_INNER_NULLPTR,
                                    ACLNN_ERR_INNER_TILING_ERROR,
                                    ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
                                    ACLNN_ERR_INNER_CREATE_EXECUTOR};
  return std::find(std::begin(kKnown), std::end(kKnown), status) != std::end(kKnown);
}

// Checks that there is an error text exactly if something failed.
void require_text(bool failed) {
  const char* text = aclGetRecentErrMsg();
  require(failed == (text != nullptr && *text != '\0'), "the error text is", text ? text : "null");
}

void run_stage2(const Function& function, const Case& call, const Objects& objects,
                uint64_t workspace_size, aclOpExecutor* executor, Outcome& outcome) {
  Buffer workspace(workspace_size);
  workspace.keep();
  const bool small = call.small_workspace && workspace_size > 0;
  const bool null = call.null_workspace || workspace_size == 0;
  outcome.stage2 =
      function.stage2(null ? nullptr : workspace.data(), workspace_size - small, executor, nullptr);
  require(is_known(*outcome.stage2), "stage 2 returned", std::to_string(*outcome.stage2));
  // The null stream runs at once, so the text may exist before its status is queried.
  if (*outcome.stage2 != OK) {
    require_text(true);
  } else {
    outcome.stream = aclrtSynchronizeStream(nullptr);
    require(*outcome.stream == OK || *outcome.stream == ACL_ERROR_RT_AICORE_EXCEPTION,
            "the stream returned", std::to_string(*outcome.stream));
    require_text(*outcome.stream != OK);
  }
  require(workspace.zones_intact(), "memory was written beside the workspace");
  objects.check(*outcome.stage2 == OK);
}

}  // namespace

Outcome run(const Function& function, Case& call) {
  require(aclHostSetProduct(call.product.c_str()) == OK, "no such product");
  aclGetRecentErrMsg();
  const int64_t living = aclHostLiveObjects(nullptr);
  Outcome outcome;
  {
    Objects objects(function, call);
    const int64_t described = aclHostLiveObjects(nullptr);
    aclGetRecentErrMsg();  // clears the text of a scalar that could not be created
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    outcome.stage1 = function.stage1(objects.given(), call.no_workspace_size ? nullptr : &size,
                                     call.no_executor ? nullptr : &executor);
    require(is_known(outcome.stage1), "stage 1 returned", std::to_string(outcome.stage1));
    require_text(outcome.stage1 != OK);
    require((outcome.stage1 == OK) == (executor != nullptr), "an executor and a failure");
    objects.check(false);
    if (outcome.stage1 == OK) {
      if (objects.computable() && size <= 16 * kMostBytes) {
        run_stage2(function, call, objects, size, executor, outcome);
      } else {
        require(aclDestroyAclOpExecutor(executor) == OK, "the executor was not destroyed");
      }
    }
    require(aclHostLiveObjects(nullptr) == described, "an object was left behind");
  }
  require(aclHostLiveObjects(nullptr) == living, "a descriptor was left behind");
  return outcome;
}

}  // namespace fuzz
