#include "fuzz/case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <numeric>

namespace fuzz {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// A byte of zero selects the first, the most common, choice.
constexpr std::array kProducts = {"Ascend910B",   "host",      "Ascend950",
                                  "Ascend910_93", "Ascend910", "Ascend310P"};
constexpr std::array kDtypes = {0,  1,  27, 11, 9,  3,  2,  4,  6,  7,  8,  10, 12, 13, 16,
                                17, 29, 30, 33, 34, 35, 36, 37, 38, 39, 40, 41, -1, 5,  99};
constexpr std::array kFormats = {2,  0,  47, 30, 1,  27, 29, 3,  4,  12, 16,
                                 32, 33, 35, 50, 51, 52, 53, 54, -1, 77};
constexpr std::array<int64_t, 32> kNumbers = {-1,
                                              -2,
                                              -3,
                                              -5,
                                              -64,
                                              -100,
                                              160,
                                              255,
                                              256,
                                              257,
                                              1024,
                                              4095,
                                              65535,
                                              65536,
                                              1000003,
                                              (1LL << 31) - 1,
                                              1LL << 31,
                                              1LL << 32,
                                              (1LL << 32) + 1,
                                              1LL << 40,
                                              1LL << 58,
                                              1LL << 59,
                                              1LL << 60,
                                              1LL << 61,
                                              1LL << 62,
                                              kMost / 2,
                                              kMost - 1,
                                              kMost,
                                              kLeast,
                                              kLeast + 1,
                                              -(1LL << 31),
                                              -(1LL << 62)};
constexpr std::array kReals = {1.0,   0.0,  0.5,   -1.0,  -0.0, 1.5,   0.75, 0.125, 2.0,
                               -0.25, 1e-6, 1e-30, 1e-45, 3e38, 1e300, 1.25, -3e38, 1e-300};
constexpr std::array kTexts = {"mean", "sum", "none", "", "tanh", "mean ", "average", "non"};
constexpr int kMaxRank = 9;
constexpr int kMostIntegers = 7;

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  uint8_t next() { return at_ < end_ ? *at_++ : 0; }

  template <class Array>
  auto one_of(const Array& values) {
    return values[next() % std::size(values)];
  }
  // Mostly small numbers, and those with which arithmetic on sizes overflows.
  int64_t number() {
    const uint8_t code = next();
    return code < 160 ? code : kNumbers[code % kNumbers.size()];
  }
  double real() {
    const uint8_t code = next();
    if (code == 255) return std::numeric_limits<double>::quiet_NaN();
    if (code >= 253) return code == 254 ? INFINITY : -INFINITY;
    return kReals[code % kReals.size()];
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

std::optional<int64_t> product_of(const std::vector<int64_t>& sizes) {
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) return {};
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product)) return {};
  }
  return product;
}

// The strides of a contiguous tensor, row-major or with the first dimension innermost.
std::vector<int64_t> packed(const std::vector<int64_t>& shape, bool reversed) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t d = reversed ? i : shape.size() - 1 - i;
    strides[d] = stride;
    stride = wrapped_product(stride, std::max<int64_t>(shape[d], 1));
  }
  return strides;
}

// The flags of a tensor. Without flags it is contiguous and fits the others.
enum TensorFlag : uint8_t {
  kNull = 1,
  kNoData = 2,
  kOwnStrides = 4,
  kReversed = 8,
  kOwnShape = 16,
  kOwnDtype = 32,
  kOwnStorage = 64,
  kShares = 128,
};

// The bytes of a tensor that are used once its shape is known.
struct Layout {
  uint8_t flags = 0;
  std::array<int64_t, kMaxRank> strides{};
  uint8_t storage_mode = 0;
  int64_t storage = 0;
};

// Reads the same number of bytes for every tensor, so that a change of one does not change the next
// arguments.
Layout read_tensor(Bytes& bytes, Argument& argument) {
  Layout layout;
  Tensor& tensor = argument.tensor;
  layout.flags = bytes.next();
  argument.null = layout.flags & kNull;
  tensor.no_data = layout.flags & kNoData;
  tensor.shares = layout.flags & kShares;
  tensor.dtype = static_cast<aclDataType>(bytes.one_of(kDtypes));
  tensor.format = static_cast<aclFormat>(bytes.one_of(kFormats));
  tensor.shape.resize(bytes.next() % (kMaxRank + 1));
  for (int i = 0; i < kMaxRank; ++i) {
    const int64_t size = bytes.number();
    if (i < static_cast<int>(tensor.shape.size())) tensor.shape[i] = size;
  }
  for (int64_t& stride : layout.strides) stride = bytes.number();
  tensor.offset = bytes.number();
  layout.storage_mode = bytes.next();
  layout.storage = bytes.number();
  tensor.values = bytes.next();
  return layout;
}

void lay_out(const Layout& layout, Tensor& tensor) {
  tensor.strides = packed(tensor.shape, layout.flags & kReversed);
  tensor.no_strides = !(layout.flags & (kReversed | kOwnStrides));
  if (layout.flags & kOwnStrides) {
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      tensor.strides[i] = i < layout.strides.size() ? layout.strides[i] : 1;
    }
  }
  if (layout.flags & kOwnStorage) {
    switch (layout.storage_mode % 4) {
      case 0: tensor.storage = {layout.storage}; break;
      case 1: tensor.storage = tensor.shape; break;
      case 2: tensor.storage = {}; break;
      default: tensor.storage = {layout.storage, layout.storage}; break;
    }
  } else {  // the actual value
    const auto extent = tensor.extent();
    const bool fits = extent && extent->last < kMost;
    tensor.storage = {fits ? extent->last + 1 : tensor.elements().value_or(0)};
  }
}

// Returns true if the array's length is to follow from the other arguments.
bool read(Bytes& bytes, Argument& argument) {
  bool fits = false;
  const bool by_value = argument.kind == Kind::kBool || argument.kind == Kind::kReal ||
                        argument.kind == Kind::kInt8 || argument.kind == Kind::kInt32 ||
                        argument.kind == Kind::kInt64;
  argument.null = (bytes.next() & 1) && !by_value;
  switch (argument.kind) {
    case Kind::kScalar:
      argument.dtype = static_cast<aclDataType>(bytes.one_of(kDtypes));
      argument.real = bytes.real();
      break;
    case Kind::kInts:
    case Kind::kBools: {
      const uint8_t code = bytes.next();
      fits = !(code & 8);
      argument.integers.resize(kMostIntegers);
      for (int64_t& value : argument.integers) value = bytes.number();
      if (!fits) argument.integers.resize(code % (kMostIntegers + 1));
      if (argument.kind == Kind::kBools) {
        for (int64_t& value : argument.integers) value &= 1;
      }
      break;
    }
    case Kind::kBool: argument.integer = bytes.next() & 1; break;
    case Kind::kInt8: argument.integer = static_cast<int8_t>(bytes.number()); break;
    case Kind::kInt32: argument.integer = static_cast<int32_t>(bytes.number()); break;
    case Kind::kInt64: argument.integer = bytes.number(); break;
    case Kind::kReal: argument.real = bytes.real(); break;
    case Kind::kText: argument.text = bytes.one_of(kTexts); break;
    case Kind::kTensor: break;
  }
  return fits;
}

// ---- JSON

std::string json(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (const int64_t value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

std::string json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

std::string json(bool value) {
  return value ? "true" : "false";
}

std::string json(const Tensor& tensor) {
  const std::string strides = tensor.no_strides ? "null" : json(tensor.strides);
  return "{\"shape\": " + json(tensor.shape) + ", \"strides\": " + strides +
         ", \"offset\": " + std::to_string(tensor.offset) +
         ", \"storage\": " + json(tensor.storage) +
         ", \"dtype\": " + std::to_string(static_cast<int>(tensor.dtype)) +
         ", \"format\": " + std::to_string(static_cast<int>(tensor.format)) +
         ", \"data\": " + json(!tensor.no_data) + ", \"labels\": " + json(tensor.labels) + "}";
}

std::string json(const Argument& argument) {
  if (argument.null) return "null";
  switch (argument.kind) {
    case Kind::kTensor: return json(argument.tensor);
    case Kind::kScalar:
      return "{\"value\": " + json(argument.real) +
             ", \"dtype\": " + std::to_string(static_cast<int>(argument.dtype)) + "}";
    case Kind::kInts:
    case Kind::kBools: return json(argument.integers);
    case Kind::kBool: return json(argument.integer != 0);
    case Kind::kInt8:
    case Kind::kInt32:
    case Kind::kInt64: return std::to_string(argument.integer);
    case Kind::kReal: return json(argument.real);
    case Kind::kText: return "\"" + argument.text + "\"";
  }
  return "null";
}

}  // namespace

std::optional<int64_t> Tensor::elements() const {
  return product_of(shape);
}

std::optional<int64_t> Tensor::declared() const {
  return product_of(storage);
}

std::optional<Tensor::Extent> Tensor::extent() const {
  if (elements().value_or(0) == 0) return {};
  Extent extent{offset, offset};
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach)) return {};
    int64_t& end = reach < 0 ? extent.first : extent.last;
    if (__builtin_add_overflow(end, reach, &end)) return {};
  }
  return extent;
}

Case decode(const uint8_t* data, size_t size, const std::vector<Kind>& kinds, Fit fit) {
  Bytes bytes(data, size);
  Case call;
  call.product = bytes.one_of(kProducts);
  const uint8_t flags = bytes.next();
  call.no_workspace_size = flags & 1;
  call.no_executor = flags & 2;
  call.null_workspace = flags & 4;
  call.small_workspace = flags & 8;

  std::vector<Layout> layouts(kinds.size());
  Fitting fitting{std::vector<bool>(kinds.size(), false), std::vector<bool>(kinds.size(), false)};
  for (size_t i = 0; i < kinds.size(); ++i) {
    Argument argument;
    argument.kind = kinds[i];
    if (argument.kind == Kind::kTensor) {
      layouts[i] = read_tensor(bytes, argument);
      fitting.shape[i] = !(layouts[i].flags & kOwnShape);
      fitting.dtype[i] = !(layouts[i].flags & kOwnDtype);
    } else {
      fitting.shape[i] = read(bytes, argument);
    }
    call.arguments.push_back(std::move(argument));
  }
  fit(call.arguments, fitting);
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == Kind::kTensor) lay_out(layouts[i], call.arguments[i].tensor);
  }
  return call;
}

std::string describe(const Case& call) {
  std::string arguments;
  for (const Argument& argument : call.arguments) {
    arguments += (arguments.empty() ? "" : ", ") + json(argument);
  }
  return "\"product\": \"" + call.product +
         "\", \"workspaceSize\": " + json(!call.no_workspace_size) +
         ", \"executor\": " + json(!call.no_executor) +
         ", \"null_workspace\": " + json(call.null_workspace) +
         ", \"small_workspace\": " + json(call.small_workspace) + ", \"arguments\": [" + arguments +
         "]";
}

}  // namespace fuzz
