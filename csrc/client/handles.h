#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "client/error.h"
#include "client/library.h"

namespace aclnn {

// The member of Meta that destroys a T; null for a type that no handle may own.
template <class T>
inline constexpr auto kDestroy = nullptr;
template <>
inline constexpr auto kDestroy<aclTensor> = &Meta::destroy_tensor;
template <>
inline constexpr auto kDestroy<aclScalar> = &Meta::destroy_scalar;
template <>
inline constexpr auto kDestroy<aclIntArray> = &Meta::destroy_int_array;
template <>
inline constexpr auto kDestroy<aclFloatArray> = &Meta::destroy_float_array;
template <>
inline constexpr auto kDestroy<aclBoolArray> = &Meta::destroy_bool_array;
template <>
inline constexpr auto kDestroy<aclTensorList> = &Meta::destroy_tensor_list;
template <>
inline constexpr auto kDestroy<aclScalarList> = &Meta::destroy_scalar_list;

// Owns one object of one library. An empty handle is an absent optional argument.
template <class T>
  requires(!std::same_as<decltype(kDestroy<T>), const std::nullptr_t>)
class Handle {
 public:
  Handle() noexcept = default;
  Handle(const Library& library, T* object) noexcept : library_(&library), object_(object) {}
  Handle(Handle&& other) noexcept
      : library_(other.library_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(library_, other.library_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_ != nullptr) (library_->meta().*kDestroy<T>)(object_);
  }

  T* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  // Releases ownership; the caller destroys the object.
  T* release() noexcept { return std::exchange(object_, nullptr); }
  // The object's library. The handle must not be empty.
  const Library& library() const noexcept { return *library_; }

 private:
  const Library* library_ = nullptr;
  T* object_ = nullptr;
};

using TensorHandle = Handle<aclTensor>;
using ScalarHandle = Handle<aclScalar>;
using IntArrayHandle = Handle<aclIntArray>;
using FloatArrayHandle = Handle<aclFloatArray>;
using BoolArrayHandle = Handle<aclBoolArray>;
using TensorListHandle = Handle<aclTensorList>;
using ScalarListHandle = Handle<aclScalarList>;

namespace detail {

// Wraps a new object in a handle; throws an Error if the library returned none.
template <class T>
Handle<T> adopt(const Library& library, const char* api, T* object) {
  if (object == nullptr) library.fail(api, ACLNN_ERR_INNER_NULLPTR);
  return {library, object};
}

// Makes a list, which takes ownership of its elements.
template <class List, class T>
Handle<List> adopt_list(const Library& library, const char* api,
                        List* (*create)(const T* const*, uint64_t),
                        std::vector<Handle<T>> elements) {
  std::vector<const T*> objects;
  objects.reserve(elements.size());
  for (const Handle<T>& element : elements) objects.push_back(element.get());
  Handle<List> list = adopt(library, api, create(objects.data(), objects.size()));
  for (Handle<T>& element : elements) element.release();
  return list;
}

}  // namespace detail

// The aclDataType of a C++ scalar type.
template <class T>
inline constexpr aclDataType kScalarType = ACL_DT_UNDEFINED;
template <>
inline constexpr aclDataType kScalarType<bool> = ACL_BOOL;
template <>
inline constexpr aclDataType kScalarType<int8_t> = ACL_INT8;
template <>
inline constexpr aclDataType kScalarType<int16_t> = ACL_INT16;
template <>
inline constexpr aclDataType kScalarType<int32_t> = ACL_INT32;
template <>
inline constexpr aclDataType kScalarType<int64_t> = ACL_INT64;
template <>
inline constexpr aclDataType kScalarType<uint8_t> = ACL_UINT8;
template <>
inline constexpr aclDataType kScalarType<uint16_t> = ACL_UINT16;
template <>
inline constexpr aclDataType kScalarType<uint32_t> = ACL_UINT32;
template <>
inline constexpr aclDataType kScalarType<uint64_t> = ACL_UINT64;
template <>
inline constexpr aclDataType kScalarType<float> = ACL_FLOAT;
template <>
inline constexpr aclDataType kScalarType<double> = ACL_DOUBLE;
template <>
inline constexpr aclDataType kScalarType<std::complex<float>> = ACL_COMPLEX64;
template <>
inline constexpr aclDataType kScalarType<std::complex<double>> = ACL_COMPLEX128;

// A view of device memory, which it does not own. Strides and offset count elements; empty strides
// mean contiguous; storage_dims may be one number, the element count of the whole storage.
inline TensorHandle make_tensor(const Library& library, std::span<const int64_t> dims,
                                aclDataType type, std::span<const int64_t> strides, int64_t offset,
                                aclFormat format, std::span<const int64_t> storage_dims,
                                void* data) {
  constexpr const char* kApi = "aclCreateTensor";
  if (!strides.empty() && strides.size() != dims.size()) {
    throw Error(
        kApi, ACLNN_ERR_PARAM_INVALID,
        std::to_string(strides.size()) + " strides for " + std::to_string(dims.size()) + " dims");
  }
  return detail::adopt(
      library, kApi,
      library.meta().create_tensor(dims.data(), dims.size(), type,
                                   strides.empty() ? nullptr : strides.data(), offset, format,
                                   storage_dims.data(), storage_dims.size(), data));
}

// A host scalar with the C++ value's own type.
template <class T>
  requires(kScalarType<T> != ACL_DT_UNDEFINED)
ScalarHandle make_scalar(const Library& library, T value) {
  return detail::adopt(library, "aclCreateScalar",
                       library.meta().create_scalar(&value, kScalarType<T>));
}

// Arrays copy the values; lists take ownership of the elements.
inline IntArrayHandle make_int_array(const Library& library, std::span<const int64_t> values) {
  return detail::adopt(library, "aclCreateIntArray",
                       library.meta().create_int_array(values.data(), values.size()));
}

inline FloatArrayHandle make_float_array(const Library& library, std::span<const float> values) {
  return detail::adopt(library, "aclCreateFloatArray",
                       library.meta().create_float_array(values.data(), values.size()));
}

inline BoolArrayHandle make_bool_array(const Library& library, std::span<const bool> values) {
  return detail::adopt(library, "aclCreateBoolArray",
                       library.meta().create_bool_array(values.data(), values.size()));
}

inline TensorListHandle make_tensor_list(const Library& library,
                                         std::vector<TensorHandle> elements) {
  return detail::adopt_list(library, "aclCreateTensorList", library.meta().create_tensor_list,
                            std::move(elements));
}

inline ScalarListHandle make_scalar_list(const Library& library,
                                         std::vector<ScalarHandle> elements) {
  return detail::adopt_list(library, "aclCreateScalarList", library.meta().create_scalar_list,
                            std::move(elements));
}

}  // namespace aclnn
