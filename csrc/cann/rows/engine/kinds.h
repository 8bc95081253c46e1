#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include "aclnn/aclnn_base.h"
#include "cann/rows/engine/exact.h"
#include "cann/rows/engine/frame.h"
#include "cann/rows/engine/outputs.h"
#include "cann/rows/engine/preparation.h"
#include "cann/rows/engine/refusal.h"
#include "cann/rows/engine/stored.h"

namespace aclnn_host {

// The kinds of arguments. Each has the type C of the prototype, the type Value that a row sees, and
// functions that convert from C into the executor (add) and from there to Value (get). Some
// prototypes have pointers to const even for outputs; the C types here need not follow them,
// because the ABI is the same. Kinds are composed: Optional may be absent, other kinds restrict the
// tensor, as in Optional<Stored<In>>.

struct In {
  using C = const aclTensor*;
  using Value = at::Tensor;
  static void add(Preparation& stage, const char* name, C tensor, bool is_required = true) {
    stage.add_tensor(name, tensor, is_required, Preparation::Access::kInput);
  }
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i); }
};
struct Out {
  using C = aclTensor*;
  using Value = Output;
  static void add(Preparation& stage, const char* name, C tensor, bool is_required = true) {
    stage.add_tensor(name, tensor, is_required, Preparation::Access::kOutput);
  }
  static Value get(const Frame& frame, size_t i) { return frame.output(i); }
};
// An argument that is read and overwritten.
struct InOut : Out {
  static void add(Preparation& stage, const char* name, C tensor, bool is_required = true) {
    stage.add_tensor(name, tensor, is_required, Preparation::Access::kInputAndOutput);
  }
};
// An in-place argument that is filled with one value.
struct FilledInOut : InOut {
  static void add(Preparation& stage, const char* name, C tensor) {
    InOut::add(stage, name, tensor);
    stage.write_once();
  }
};
// An output whose size depends on the values of the inputs.
struct SizedOut {
  using C = aclTensor*;
  using Value = SizedOutput;
  static void add(Preparation& stage, const char* name, C tensor) { stage.add_sized(name, tensor); }
  static Value get(const Frame& frame, size_t i) {
    return {frame.output(i), frame.shapes[frame.range(i)->first]};
  }
};

// Lists of tensors.
struct Ins {
  using C = const aclTensorList*;
  using Value = std::vector<at::Tensor>;
  static void add(Preparation& stage, const char* name, C list, bool is_required = true) {
    stage.add_list(name, list, is_required, Preparation::Access::kInput);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto begin = frame.tensors.begin() + static_cast<int64_t>(frame.range(i)->first);
    return Value(begin, begin + static_cast<int64_t>(frame.range(i)->count));
  }
};
struct Outs {
  using C = aclTensorList*;
  using Value = std::vector<Output>;
  static void add(Preparation& stage, const char* name, C list, bool is_required = true) {
    stage.add_list(name, list, is_required, Preparation::Access::kOutput);
  }
  static Value get(const Frame& frame, size_t i) {
    Value outputs;
    const TensorRange range = *frame.range(i);
    const bool are_apart = frame.writes && tensors_are_apart(frame);
    for (size_t t = range.first; t < range.end(); ++t) {
      outputs.emplace_back(frame.names[i], frame.tensors[t], frame.writes, nullptr, are_apart);
    }
    return outputs;
  }
};
// A list that is read and overwritten.
struct InOuts : Outs {
  static void add(Preparation& stage, const char* name, C list, bool is_required = true) {
    stage.add_list(name, list, is_required, Preparation::Access::kInputAndOutput);
  }
};

// Tensors that may have some types only, for ATen functions that would refuse others in stage 2,
// too late.
template <class Base, Preparation::Types types>
struct Typed : Base {
  static void add(Preparation& stage, const char* name, typename Base::C tensor,
                  bool is_required = true) {
    Base::add(stage, name, tensor, is_required);
    stage.expect(types);
  }
};
template <class Base>
using Floating = Typed<Base, Preparation::Types::kFloating>;
template <class Base>
using FloatingOrComplex = Typed<Base, Preparation::Types::kFloatingOrComplex>;
template <class Base>
using Real = Typed<Base, Preparation::Types::kReal>;
template <class Base>
using Integral = Typed<Base, Preparation::Types::kIntegral>;  // includes BOOL
// Indices of INT32 or INT64, which a row sees as INT64.
struct IndexIn : Typed<In, Preparation::Types::kIndex> {
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i).to(at::kLong); }
};

// Tensors that may be in a private format. A row sees the elements in logical order.
template <class Base>
struct Blocked : Base {
  static void add(Preparation& stage, const char* name, typename Base::C tensor,
                  bool is_required = true) {
    Base::add(stage, name, tensor, is_required);
    stage.allow(Preparation::Allowed::kFormats);
  }
};

// Tensors that may have types and formats that ATen lacks. A row sees a StoredTensor for an input
// and a StoredOutput for an output.
template <class Base>
struct Stored : Base {
  static constexpr bool kIsInput = std::is_const_v<std::remove_pointer_t<typename Base::C>>;
  static constexpr bool kIsList = !std::is_same_v<typename Base::C, const aclTensor*> &&
                                  !std::is_same_v<typename Base::C, aclTensor*>;
  using One = std::conditional_t<kIsInput, StoredTensor, StoredOutput>;
  using Value = std::conditional_t<kIsList, std::vector<One>, One>;
  static void add(Preparation& stage, const char* name, typename Base::C tensor,
                  bool is_required = true) {
    Base::add(stage, name, tensor, is_required);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    const TensorRange range = *frame.range(i);
    if constexpr (kIsList) {
      Value values;
      for (size_t t = range.first; t < range.end(); ++t) values.push_back(one(frame, i, t));
      return values;
    } else {
      return one(frame, i, range.first);
    }
  }

 private:
  static One one(const Frame& frame, size_t i, size_t t) {
    const TensorView& view = frame.views[t];
    if constexpr (kIsInput) {
      const uint64_t dims = view.shape.size();
      const bool has_columns_first =
          dims >= 2 && view.strides[dims - 2] == 1 && view.strides[dims - 1] != 1;
      return {frame.tensors[t], view.dtype, view.format, has_columns_first};
    } else {
      const auto* tensors = kIsList ? nullptr : &frame.tensors;
      return {Output(frame.names[i], frame.tensors[t], frame.writes, tensors), view.dtype,
              view.format};
    }
  }
};

// An argument of which a row changes some elements, in a type that ATen may lack.
struct EncodedInOut : InOut {
  using Value = EncodedOutput;
  static void add(Preparation& stage, const char* name, C tensor) {
    InOut::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kTypesInBytes);
  }
  static Value get(const Frame& frame, size_t i) {
    return {frame.output(i), frame.views[frame.range(i)->first]};
  }
};

// A data type that ATen may lack.
struct StoredDtype {
  using C = aclDataType;
  using Value = aclDataType;
  static void add(Preparation& stage, const char* name, C dtype) {
    stage.add_value(name, static_cast<int64_t>(dtype));
  }
  static Value get(const Frame& frame, size_t i) {
    return static_cast<aclDataType>(std::get<c10::Scalar>(frame.slots[i]).toLong());
  }
};

struct Number {
  using C = const aclScalar*;
  using Value = c10::Scalar;
  static void add(Preparation& stage, const char* name, C scalar, bool is_required = true) {
    stage.add_scalar(name, scalar, is_required);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct Numbers {
  using C = const aclScalarList*;
  using Value = std::vector<c10::Scalar>;
  static void add(Preparation& stage, const char* name, C list) { stage.add_scalars(name, list); }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
// Numbers that a row only computes with. Only their type, their sign and which types can hold them
// decide whether ATen accepts a call, so stage 1 does not check calls again that differ in other
// respects.
struct AnyNumber {
  using C = const aclScalar*;
  using Value = c10::Scalar;
  static void add(Preparation& stage, const char* name, C scalar) {
    stage.add_any_number(name, scalar);
  }
  static Value get(const Frame& frame, size_t i) {
    return std::get<AnyValue>(frame.slots[i]).number;
  }
};
struct AnyNumbers {
  using C = const aclScalarList*;
  using Value = std::vector<c10::Scalar>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_any_numbers(name, list);
  }
  static Value get(const Frame& frame, size_t i) {
    Value numbers;
    for (const AnyValue& value : std::get<std::vector<AnyValue>>(frame.slots[i])) {
      numbers.push_back(value.number);
    }
    return numbers;
  }
};
// Arrays.
struct Ints {
  using C = const aclIntArray*;
  using Value = at::IntArrayRef;
  static void add(Preparation& stage, const char* name, C array, bool is_required = true) {
    stage.add_ints(name, array, is_required);
  }
  static Value get(const Frame& frame, size_t i) {
    return std::get<std::vector<int64_t>>(frame.slots[i]);
  }
};
struct Floats {
  using C = const aclFloatArray*;
  using Value = std::vector<double>;
  static void add(Preparation& stage, const char* name, C array, bool is_required = true) {
    stage.add_floats(name, array, is_required);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct Bools {
  using C = const aclBoolArray*;
  using Value = std::vector<bool>;
  static void add(Preparation& stage, const char* name, C array, bool is_required = true) {
    stage.add_bools(name, array, is_required);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};

// The value of an argument that may be absent. An absent list of tensors is an empty one.
template <class Value>
struct OrAbsent {
  using type = std::optional<Value>;
};
template <>
struct OrAbsent<Output> {
  using type = OptionalOutput;
};
template <>
struct OrAbsent<at::IntArrayRef> {
  using type = at::OptionalIntArrayRef;
};
template <class Tensor>
  requires std::is_same_v<Tensor, at::Tensor> || std::is_same_v<Tensor, Output> ||
           std::is_same_v<Tensor, StoredTensor> || std::is_same_v<Tensor, StoredOutput>
struct OrAbsent<std::vector<Tensor>> {
  using type = std::vector<Tensor>;
};

// An argument that may be null.
template <class Base>
struct Optional {
  using C = typename Base::C;
  using Value = typename OrAbsent<typename Base::Value>::type;
  static void add(Preparation& stage, const char* name, C argument) {
    Base::add(stage, name, argument, /*is_required=*/false);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.is_given(i) ? Value(Base::get(frame, i)) : Value();
  }
};

// Kinds that are C types: numbers, aclDataType and text. A null const char* is refused; a null
// char* is the empty text, which the generated operators read as "the default".
template <class T>
struct Plain {
  static_assert(std::is_arithmetic_v<T>);
  // A row sees the widest type of the kind: bool, int64_t, uint64_t or double.
  using Wide = std::conditional_t<std::is_same_v<T, bool> || std::is_same_v<T, uint64_t>, T,
                                  std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>;
  using C = T;
  using Value = Exact<Wide>;
  static void add(Preparation& stage, const char* name, C value) {
    stage.add_value(name, static_cast<Wide>(value));
  }
  static Value get(const Frame& frame, size_t i) {
    return Value(std::get<c10::Scalar>(frame.slots[i]).to<Wide>());
  }
};
template <>
struct Plain<aclDataType> {
  using C = aclDataType;
  using Value = c10::ScalarType;
  static void add(Preparation& stage, const char* name, C dtype) { stage.add_dtype(name, dtype); }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
template <>
struct Plain<const char*> {
  using C = const char*;
  using Value = std::string;
  static void add(Preparation& stage, const char* name, C text) {
    stage.add_text(name, text, true);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
template <>
struct Plain<char*> {
  using C = char*;
  using Value = std::string;
  static void add(Preparation& stage, const char* name, C text) {
    stage.add_text(name, text, false);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto* text = std::get_if<Value>(&frame.slots[i]);
    return text ? *text : Value();
  }
};

template <class T>
concept NamedKind = requires { typename T::Value; };
template <class T>
struct KindOf {
  using type = Plain<T>;
};
template <NamedKind T>
struct KindOf<T> {
  using type = T;
};
template <class T>
using Kind = typename KindOf<T>::type;

// A tensor, or a list of tensors, with the dtype (SameDtype), the shape (SameShape) or both (Like)
// of another argument. The name of the other argument follows: (SameDtype<Optional<In>>, bias,
// "x"). If either is absent, nothing is compared.
template <class Base, Preparation::Same same>
struct Compared : Base {
  static void add(Preparation& stage, const char* name, typename Base::C argument,
                  const char* other) {
    Base::add(stage, name, argument);
    stage.expect_same(same, other);
  }
};
template <class Base>
using SameDtype = Compared<Base, Preparation::Same::kDtype>;
template <class Base>
using SameShape = Compared<Base, Preparation::Same::kShape>;
template <class Base>
using Like = Compared<Base, Preparation::Same::kDtypeAndShape>;

// The value of an argument that a row does not read.
struct Nothing {};

// An argument that does not influence the result. The reason follows its name.
template <class Base>
struct Unused : Kind<Base> {
  using Taken = Kind<Base>;  // read from a call like any other argument
  using Value = Nothing;
  template <class C>
  static void add(Preparation& stage, const char* name, C argument, const char* /*reason*/ = "") {
    Kind<Base>::add(stage, name, argument);
  }
  static Value get(const Frame& /*frame*/, size_t /*i*/) { return {}; }
};

// An argument that must be null, because the host CANN does not compute the case that it selects.
// The reason follows its name, and is part of the error text.
template <class Base>
struct Refused : Unused<Optional<Base>> {
  static void add(Preparation& stage, const char* name, typename Base::C argument,
                  const char* reason) {
    stage.expect_null(name, argument, reason);
    Optional<Base>::add(stage, name, argument);
  }
};

}  // namespace aclnn_host
