// One call of a two-stage function, decoded from a fuzzer's bytes. Any bytes are a call: missing
// bytes count as 0, and zeros are a valid call without elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"

namespace fuzz {

enum class Kind { kTensor, kScalar, kInts, kBools, kBool, kInt8, kInt32, kInt64, kReal, kText };

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<int64_t> storage;  // the declared storage shape
  int64_t offset = 0;
  aclDataType dtype = ACL_FLOAT;
  aclFormat format = ACL_FORMAT_ND;
  bool no_strides = false;      // passed as a null pointer
  bool no_data = false;         // the address is null
  bool shares = false;          // uses the memory of the first tensor, if that is large enough
  uint8_t values = 0;           // the choice of the elements' values
  std::vector<int64_t> labels;  // the elements of small integer tensors, set when they are filled

  // Nothing for a negative or overflowing number.
  std::optional<int64_t> elements() const;
  std::optional<int64_t> declared() const;  // elements of the storage
  // The positions of the first and the last element; nothing when the numbers overflow, or there
  // are no elements.
  struct Extent {
    int64_t first;
    int64_t last;
  };
  std::optional<Extent> extent() const;
};

struct Argument {
  Kind kind = Kind::kTensor;
  bool null = false;  // for arguments that are pointers
  Tensor tensor;
  double real = 0;  // also of a scalar
  int64_t integer = 0;
  aclDataType dtype = ACL_FLOAT;  // of a scalar
  std::vector<int64_t> integers;  // also of an array of bools
  std::string text;
};

struct Case {
  std::string product;
  bool no_workspace_size = false;
  bool no_executor = false;
  bool null_workspace = false;   // in stage 2
  bool small_workspace = false;  // in stage 2
  std::vector<Argument> arguments;
};

// For each argument: true if the shape or the length, or the dtype, is to follow from the other
// arguments.
struct Fitting {
  std::vector<bool> shape;
  std::vector<bool> dtype;
};
using Fit = void (*)(std::vector<Argument>&, const Fitting&);

Case decode(const uint8_t* data, size_t size, const std::vector<Kind>& kinds, Fit fit);

// As a JSON object, without the braces.
std::string describe(const Case& call);

}  // namespace fuzz
