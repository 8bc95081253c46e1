#include "host_cann/descriptors/scalar.h"

#include <cstring>
#include <memory>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/aclnn_guard.h"

namespace {

template <class T>
T read(const void* value) {
  T result;
  std::memcpy(&result, value, sizeof(T));
  return result;
}

float bfloat16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float result;
  std::memcpy(&result, &wide, sizeof(result));
  return result;
}

// Stores the value at `source`; false for a dtype that scalars do not support.
bool store(aclScalar& scalar, const void* source, aclDataType dtype) {
  scalar.dtype = dtype;
  switch (dtype) {
    case ACL_FLOAT: scalar.real = read<float>(source); return true;
    case ACL_DOUBLE: scalar.real = read<double>(source); return true;
    case ACL_FLOAT16: scalar.real = aclFloat16ToFloat(read<aclFloat16>(source)); return true;
    case ACL_BF16: scalar.real = bfloat16_to_float(read<uint16_t>(source)); return true;
    case ACL_INT8: scalar.integer = read<int8_t>(source); return true;
    case ACL_INT16: scalar.integer = read<int16_t>(source); return true;
    case ACL_INT32: scalar.integer = read<int32_t>(source); return true;
    case ACL_INT64: scalar.integer = read<int64_t>(source); return true;
    // Any nonzero byte is true: reading it as bool would be undefined.
    case ACL_BOOL: scalar.integer = read<uint8_t>(source) != 0; return true;
    case ACL_UINT8: scalar.natural = read<uint8_t>(source); return true;
    case ACL_UINT16: scalar.natural = read<uint16_t>(source); return true;
    case ACL_UINT32: scalar.natural = read<uint32_t>(source); return true;
    case ACL_UINT64: scalar.natural = read<uint64_t>(source); return true;
    case ACL_COMPLEX64: {
      const auto* parts = static_cast<const char*>(source);
      scalar.complex[0] = read<float>(parts);
      scalar.complex[1] = read<float>(parts + sizeof(float));
      return true;
    }
    case ACL_COMPLEX128: std::memcpy(scalar.complex, source, sizeof(scalar.complex)); return true;
    default: return false;
  }
}

}  // namespace

bool aclScalar::is_complex() const {
  return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128;
}

std::variant<double, int64_t, uint64_t> aclScalar::value() const {
  switch (dtype) {
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_INT64:
    case ACL_BOOL: return integer;
    case ACL_UINT8:
    case ACL_UINT16:
    case ACL_UINT32:
    case ACL_UINT64: return natural;
    case ACL_COMPLEX64:
    case ACL_COMPLEX128: return complex[0];
    default: return real;
  }
}

double aclScalar::to_double() const {
  return std::visit([](auto value) { return static_cast<double>(value); }, value());
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  using aclnn_host::fail;
  if (value == nullptr) {
    fail(ACLNN_ERR_PARAM_NULLPTR, "aclCreateScalar: value is null");
    return nullptr;
  }
  return aclnn_host::guarded(
      "aclCreateScalar", static_cast<aclScalar*>(nullptr), ACL_ERROR_BAD_ALLOC,
      [&]() -> aclScalar* {
        auto scalar = std::make_unique<aclScalar>();
        if (store(*scalar, value, dataType)) return scalar.release();
        fail(ACLNN_ERR_PARAM_INVALID,
             "aclCreateScalar: the data type is %d, which a scalar cannot have",
             static_cast<int>(dataType));
        return nullptr;
      });
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return aclnn_host::destroy("aclDestroyScalar", "scalar", scalar);
}
