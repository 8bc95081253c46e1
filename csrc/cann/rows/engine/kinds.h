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

namespace aclnn_host {

// The kinds of arguments. Each has the type C of the prototype, the type Value that a row sees, and
// the ways from C into the executor and from there to Value. (Whether C points to const, as some
// prototypes say even of outputs, is no matter to callers.)
struct In {
  using C = const aclTensor*;
  using Value = at::Tensor;
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, true, Preparation::Access::kInput);
  }
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i); }
};
struct OptionalIn {
  using C = const aclTensor*;
  using Value = std::optional<at::Tensor>;
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, false, Preparation::Access::kInput);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? Value(frame.tensor(i)) : std::nullopt;
  }
};
struct Out {
  using C = aclTensor*;
  using Value = Output;
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, true, Preparation::Access::kOutput);
  }
  static Value get(const Frame& frame, size_t i) { return frame.output(i); }
};
// An argument that is read and overwritten.
struct InOut : Out {
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, true, Preparation::Access::kInputAndOutput);
  }
};
// An argument whose elements all become the same.
struct FilledInOut : InOut {
  static void add(Preparation& stage, const char* name, C tensor) {
    InOut::add(stage, name, tensor);
    stage.write_once();
  }
};
struct OptionalOut {
  using C = aclTensor*;
  using Value = OptionalOutput;
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, false, Preparation::Access::kOutput);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? Value(frame.output(i)) : Value();
  }
};
struct OptionalInOut : OptionalOut {
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, false, Preparation::Access::kInputAndOutput);
  }
};
struct SizedOut {
  using C = aclTensor*;
  using Value = SizedOutput;
  static void add(Preparation& stage, const char* name, C tensor) { stage.add_sized(name, tensor); }
  static Value get(const Frame& frame, size_t i) {
    return {frame.output(i), frame.shapes[frame.range(i)->first]};
  }
};

// Tensors of some types only, where ATen would notice others too late: in stage 2.
template <class Base, Preparation::Types types>
struct Typed : Base {
  static void add(Preparation& stage, const char* name, typename Base::C tensor) {
    Base::add(stage, name, tensor);
    stage.expect(types);
  }
};
using FloatIn = Typed<In, Preparation::Types::kFloating>;
using FloatInOut = Typed<InOut, Preparation::Types::kFloating>;
using FloatOrComplexIn = Typed<In, Preparation::Types::kFloatingOrComplex>;
using RealOut = Typed<Out, Preparation::Types::kReal>;
using RealInOut = Typed<InOut, Preparation::Types::kReal>;
using IntegralIn = Typed<In, Preparation::Types::kIntegral>;  // BOOL is one of them
using IntegralInOut = Typed<InOut, Preparation::Types::kIntegral>;
// Places in another tensor, INT32 or INT64, which a row sees as INT64.
struct IndexIn : Typed<In, Preparation::Types::kIndex> {
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i).to(at::kLong); }
};

// A tensor that may be in a private format. A row sees the elements in order.
struct BlockedIn : In {
  static void add(Preparation& stage, const char* name, C tensor) {
    In::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kFormats);
  }
};
// A tensor that may be absent or in a private format.
struct OptionalBlockedIn : OptionalIn {
  static void add(Preparation& stage, const char* name, C tensor) {
    OptionalIn::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kFormats);
  }
};
// Tensors that may have types and formats that ATen lacks: see Stored.
struct StoredIn {
  using C = const aclTensor*;
  using Value = Stored;
  static void add(Preparation& stage, const char* name, C tensor) {
    In::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) { return frame.stored(frame.range(i)->first); }
};
struct OptionalStoredIn {
  using C = const aclTensor*;
  using Value = std::optional<Stored>;
  static void add(Preparation& stage, const char* name, C tensor) {
    OptionalIn::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? Value(StoredIn::get(frame, i)) : std::nullopt;
  }
};
struct StoredOut {
  using C = aclTensor*;
  using Value = StoredOutput;
  static void add(Preparation& stage, const char* name, C tensor) {
    Out::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    const TensorView& view = frame.views[frame.range(i)->first];
    return {frame.output(i), view.dtype, view.format};
  }
};

// A tensor of a type that ATen may lack, which is read and overwritten.
struct StoredInOut : StoredOut {
  static void add(Preparation& stage, const char* name, C tensor) {
    stage.add_tensor(name, tensor, true, Preparation::Access::kInputAndOutput);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
};
struct OptionalStoredOut {
  using C = aclTensor*;
  using Value = std::optional<StoredOutput>;
  static void add(Preparation& stage, const char* name, C tensor) {
    OptionalOut::add(stage, name, tensor);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? Value(StoredOut::get(frame, i)) : std::nullopt;
  }
};

// A data type that ATen may lack: see Stored.
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

struct Ins {
  using C = const aclTensorList*;
  using Value = std::vector<at::Tensor>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, true, Preparation::Access::kInput);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto begin = frame.tensors.begin() + static_cast<int64_t>(frame.range(i)->first);
    return Value(begin, begin + static_cast<int64_t>(frame.range(i)->count));
  }
};
// An absent list is an empty one.
struct OptionalIns {
  using C = const aclTensorList*;
  using Value = std::vector<at::Tensor>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, false, Preparation::Access::kInput);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? Ins::get(frame, i) : Value();
  }
};
struct StoredIns {
  using C = const aclTensorList*;
  using Value = std::vector<Stored>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, true, Preparation::Access::kInput);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    Value values;
    const TensorRange range = *frame.range(i);
    for (size_t t = range.first; t < range.end(); ++t) values.push_back(frame.stored(t));
    return values;
  }
};
struct OptionalStoredIns {
  using C = const aclTensorList*;
  using Value = std::vector<Stored>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, false, Preparation::Access::kInput);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? StoredIns::get(frame, i) : Value();
  }
};
struct Outs {
  using C = aclTensorList*;
  using Value = std::vector<Output>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, true, Preparation::Access::kOutput);
  }
  static Value get(const Frame& frame, size_t i) {
    Value outputs;
    const TensorRange range = *frame.range(i);
    const bool are_apart = frame.writes && places_are_apart(frame);
    for (size_t t = range.first; t < range.end(); ++t) {
      outputs.emplace_back(frame.names[i], frame.tensors[t], frame.writes, nullptr, are_apart);
    }
    return outputs;
  }
};
// A list that is read and overwritten.
struct InOuts : Outs {
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, true, Preparation::Access::kInputAndOutput);
  }
};
struct StoredOuts {
  using C = aclTensorList*;
  using Value = std::vector<StoredOutput>;
  static void add(Preparation& stage, const char* name, C list) {
    Outs::add(stage, name, list);
    stage.allow(Preparation::Allowed::kFormatsAndTypes);
  }
  static Value get(const Frame& frame, size_t i) {
    Value outputs;
    const TensorRange range = *frame.range(i);
    for (size_t t = range.first; t < range.end(); ++t) {
      const TensorView& view = frame.views[t];
      outputs.emplace_back(Output(frame.names[i], frame.tensors[t], frame.writes), view.dtype,
                           view.format);
    }
    return outputs;
  }
};
struct OptionalOuts {
  using C = aclTensorList*;
  using Value = std::vector<Output>;
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, false, Preparation::Access::kOutput);
  }
  static Value get(const Frame& frame, size_t i) {
    return frame.range(i) ? Outs::get(frame, i) : Value();
  }
};
struct OptionalInOuts : OptionalOuts {
  static void add(Preparation& stage, const char* name, C list) {
    stage.add_list(name, list, false, Preparation::Access::kInputAndOutput);
  }
};
struct Number {
  using C = const aclScalar*;
  using Value = c10::Scalar;
  static void add(Preparation& stage, const char* name, C scalar) {
    stage.add_scalar(name, scalar, true);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct OptionalNumber {
  using C = const aclScalar*;
  using Value = std::optional<c10::Scalar>;
  static void add(Preparation& stage, const char* name, C scalar) {
    stage.add_scalar(name, scalar, false);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto* scalar = std::get_if<c10::Scalar>(&frame.slots[i]);
    return scalar ? Value(*scalar) : std::nullopt;
  }
};
struct Numbers {
  using C = const aclScalarList*;
  using Value = std::vector<c10::Scalar>;
  static void add(Preparation& stage, const char* name, C list) { stage.add_scalars(name, list); }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
// Numbers that a row only computes with. Nothing of them but their type, their sign and which types
// can hold them makes a call right or wrong, so that stage 1 need not ask ATen again where they
// differ in no more.
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
struct Ints {
  using C = const aclIntArray*;
  using Value = at::IntArrayRef;
  static void add(Preparation& stage, const char* name, C array) {
    stage.add_ints(name, array, true);
  }
  static Value get(const Frame& frame, size_t i) {
    return std::get<std::vector<int64_t>>(frame.slots[i]);
  }
};
struct OptionalInts {
  using C = const aclIntArray*;
  using Value = at::OptionalIntArrayRef;
  static void add(Preparation& stage, const char* name, C array) {
    stage.add_ints(name, array, false);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto* values = std::get_if<std::vector<int64_t>>(&frame.slots[i]);
    return values ? Value(*values) : std::nullopt;
  }
};
struct Floats {
  using C = const aclFloatArray*;
  using Value = std::vector<double>;
  static void add(Preparation& stage, const char* name, C array) {
    stage.add_floats(name, array, true);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct OptionalFloats {
  using C = const aclFloatArray*;
  using Value = std::optional<std::vector<double>>;
  static void add(Preparation& stage, const char* name, C array) {
    stage.add_floats(name, array, false);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto* values = std::get_if<std::vector<double>>(&frame.slots[i]);
    return values ? Value(*values) : std::nullopt;
  }
};
struct Bools {
  using C = const aclBoolArray*;
  using Value = std::vector<bool>;
  static void add(Preparation& stage, const char* name, C array) {
    stage.add_bools(name, array, true);
  }
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct OptionalBools {
  using C = const aclBoolArray*;
  using Value = std::optional<std::vector<bool>>;
  static void add(Preparation& stage, const char* name, C array) {
    stage.add_bools(name, array, false);
  }
  static Value get(const Frame& frame, size_t i) {
    const auto* values = std::get_if<std::vector<bool>>(&frame.slots[i]);
    return values ? Value(*values) : std::nullopt;
  }
};

// Kinds that are C types: numbers, aclDataType, and text (null is refused for const char*, and
// empty for char*, which the generated operators take as "the default").
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

}  // namespace aclnn_host
