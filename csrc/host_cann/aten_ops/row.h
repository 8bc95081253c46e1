#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/executor.h"

// One thing, the language of the rows: operators that are one call of ATen. A row declares one
// against CANN's published prototype, and says what it is:
//
//   ACLNN(Add, (In, self), (In, other), (Number, alpha), (Out, out)) {
//     out = at::add(self, other, alpha);
//   }
//
// declares aclnnAddGetWorkspaceSize and aclnnAdd. The kinds of arguments stand below; a kind that
// is no name of ours is the C type itself (int64_t, bool, const char*, ...). Stage 1 copies the
// arguments and runs the row on tensors without memory, which tells what ATen thinks of the shapes,
// and once for each combination of dtypes on scratch memory, which tells whether ATen has kernels
// for them (a rehearsal). What ATen refuses there is 161002. Stage 2 runs it on the memory.

namespace aclnn_host {

// A number that converts to its own type alone. ATen's functions are overloaded on bool, int64_t,
// Scalar and std::optional of these, and a plain int64_t would silently choose among them: as the
// correction of at::var, for example, it is the overload with `bool unbiased`. What takes another
// type gets it by name: c10::Scalar(n.value()).
template <class T>
class Exact {
 public:
  constexpr explicit Exact(T value) : value_(value) {}
  template <std::same_as<T> U>
  constexpr operator U() const {
    return value_;
  }
  constexpr T value() const { return value_; }

  friend constexpr bool operator==(Exact, Exact) = default;
  friend constexpr auto operator<=>(Exact, Exact) = default;
  template <class U>
    requires std::is_arithmetic_v<U>
  friend constexpr bool operator==(Exact a, U b) {
    return a.value_ == static_cast<T>(b);
  }
  template <class U>
    requires std::is_arithmetic_v<U>
  friend constexpr auto operator<=>(Exact a, U b) {
    return a.value_ <=> static_cast<T>(b);
  }

 private:
  T value_;
};

// What a row writes to: an assignment copies into the caller's memory, cast to its type, whatever
// its strides. The shapes must agree and the result's type must be castable.
class Output {
 public:
  // One of which only the checks are wanted has `is_written` false.
  Output(const char* name, at::Tensor tensor, bool is_written)
      : name_(name), tensor_(std::move(tensor)), is_written_(is_written) {}
  Output(const Output&) = default;
  Output(Output&&) = default;
  Output& operator=(const at::Tensor& result);
  Output& operator=(const Output& result) { return *this = result.tensor_; }
  // Refuses an output that results of this type cannot be cast to.
  void expect(at::ScalarType result) const;
  // An assignment where any type may be cast to any other.
  void copy(const at::Tensor& result);

  // The memory before the row writes to it.
  operator const at::Tensor&() const { return tensor_; }
  const at::Tensor* operator->() const { return &tensor_; }
  const char* name() const { return name_; }
  bool is_written() const { return is_written_; }

 private:
  const char* name_;
  at::Tensor tensor_;
  bool is_written_;
};

// An output that the caller may leave out: nothing is written to one that is absent.
class OptionalOutput {
 public:
  OptionalOutput() = default;
  explicit OptionalOutput(Output output) : output_(std::move(output)) {}
  OptionalOutput& operator=(const at::Tensor& result) {
    if (output_) *output_ = result;
    return *this;
  }
  explicit operator bool() const { return output_.has_value(); }
  const Output& operator*() const { return *output_; }

 private:
  std::optional<Output> output_;
};

// An output whose shape depends on the data. The caller gives contiguous memory for the largest
// result and reads the real shape with aclGetViewShape once the stream is synchronised. In stage 1,
// where there are no data, a row says what type it expects and assigns nothing.
class SizedOutput {
 public:
  SizedOutput(Output memory, std::shared_ptr<Dims> shape)
      : memory_(std::move(memory)), shape_(std::move(shape)) {}
  SizedOutput& operator=(const at::Tensor& result);
  // Refuses an output that results of this type cannot be cast to.
  void expect(at::ScalarType result) const { memory_.expect(result); }

 private:
  Output memory_;
  std::shared_ptr<Dims> shape_;
};

// The copy of an argument: where its tensors stand in the executor, or a value.
struct TensorRange {
  size_t first;
  size_t count;
};
using Slot = std::variant<std::monostate, TensorRange, c10::Scalar, std::vector<c10::Scalar>,
                          std::vector<int64_t>, std::vector<double>, std::vector<bool>, std::string,
                          c10::ScalarType>;

// A tensor in a type or a format that ATen may lack, as a row sees it: its elements, INT4 as INT8,
// the types of FLOAT8 and FLOAT4 as FLOAT, those of a private format in order.
struct Stored {
  at::Tensor elements;
  aclDataType dtype;  // as it is stored
  aclFormat format;
};

// The arguments of one call as a row sees them. The tensors have the caller's memory, scratch
// memory, or none.
struct Frame {
  const std::vector<Slot>& slots;
  const std::vector<const char*>& names;
  const std::vector<at::Tensor>& tensors;
  const std::vector<TensorView>& views;              // of the tensors, as the caller has them
  const std::vector<std::shared_ptr<Dims>>& shapes;  // of the SizedOutputs, by tensor
  bool writes;                                       // false in stage 1

  const TensorRange* range(size_t i) const { return std::get_if<TensorRange>(&slots[i]); }
  const at::Tensor& tensor(size_t i) const { return tensors[range(i)->first]; }
  Stored stored(size_t t) const { return {tensors[t], views[t].dtype, views[t].format}; }
  Output output(size_t i) const { return Output(names[i], tensor(i), writes); }
};

// An output of that kind. What is assigned is rounded to the type in which it is stored; numbers
// beyond the range of INT4 wrap, those beyond FLOAT8's become inf or nan.
class StoredOutput : public Output {
 public:
  StoredOutput(Output elements, aclDataType dtype, aclFormat format)
      : Output(std::move(elements)), dtype_(dtype), format_(format) {}
  using Output::operator=;
  aclDataType dtype() const { return dtype_; }
  aclFormat format() const { return format_; }

 private:
  aclDataType dtype_;
  aclFormat format_;
};

// Whether the row that runs on this thread is rehearsed: its inputs are all zeros or all ones. For
// rows that check values, not only shapes and dtypes.
bool is_rehearsed() noexcept;

// Stage 1 of one call: checks and copies the arguments one by one, then makes the executor.
class Preparation {
 public:
  using Run = void (*)(const Frame&);

  Preparation(const char* api, uint64_t* workspace_size, aclOpExecutor** executor);
  ~Preparation();

  enum class Access { kInput, kOutput, kInputAndOutput };
  void add_tensor(const char* name, const aclTensor* tensor, bool required, Access access);
  void add_list(const char* name, const aclTensorList* list, bool required, Access access);
  void add_sized(const char* name, aclTensor* tensor);
  void add_scalar(const char* name, const aclScalar* scalar, bool required);
  void add_scalars(const char* name, const aclScalarList* scalars);
  void add_ints(const char* name, const aclIntArray* values, bool required);
  void add_floats(const char* name, const aclFloatArray* values, bool required);
  void add_bools(const char* name, const aclBoolArray* values, bool required);
  void add_text(const char* name, const char* text, bool required);
  void add_dtype(const char* name, aclDataType dtype);
  void add_value(const char* name, c10::Scalar value);

  // Says which types the tensor added last may have.
  enum class Types { kAny, kFloating, kFloatingOrComplex, kIntegral, kIndex };
  void expect(Types types);
  // Lets the tensors of the last argument have what ATen lacks (see stored.h): private formats, or
  // these and types.
  enum class Allowed { kNone, kFormats, kFormatsAndTypes };
  void allow(Allowed allowed);

  aclnnStatus finish(Run run);

 private:
  struct State;
  template <class Body>
  void add(const char* name, const void* pointer, bool required, Body body);

  std::unique_ptr<State> state_;
};

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
using IntegralIn = Typed<In, Preparation::Types::kIntegral>;  // BOOL is one of them
using IntegralInOut = Typed<InOut, Preparation::Types::kIntegral>;
// Places in another tensor, INT32 or INT64, which a row sees as INT64.
struct IndexIn : Typed<In, Preparation::Types::kIndex> {
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i).to(at::kLong); }
};

// FLOAT for FLOAT16 and BFLOAT16, other types and tensors as they are: for rows whose intermediate
// results would be rounded to 16 bits. An assignment to the output rounds once.
inline at::ScalarType wide(at::ScalarType dtype) {
  return at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
}
inline at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(wide(tensor.scalar_type()));
}
inline at::Tensor wide(const Output& out) {
  return wide(static_cast<const at::Tensor&>(out));
}
inline std::optional<at::Tensor> wide(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(wide(*tensor)) : std::nullopt;
}

// UINT16, UINT32 and UINT64, for which ATen has few kernels, as the signed type of that size, and
// BOOL as UINT8: for rows that move elements and do not compute with them.
inline at::Tensor as_movable(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kUInt16: return tensor.view(at::kShort);
    case at::kUInt32: return tensor.view(at::kInt);
    case at::kUInt64: return tensor.view(at::kLong);
    case at::kBool: return tensor.view(at::kByte);
    default: return tensor;
  }
}
// What `move` makes of such a tensor, in the tensor's own type again.
template <class Move>
at::Tensor moved(const at::Tensor& tensor, Move move) {
  return move(as_movable(tensor)).view(tensor.scalar_type());
}

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
    const auto [first, count] = *frame.range(i);
    for (size_t t = first; t < first + count; ++t) values.push_back(frame.stored(t));
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
    const auto [first, count] = *frame.range(i);
    for (size_t t = first; t < first + count; ++t) {
      outputs.emplace_back(frame.names[i], frame.tensors[t], frame.writes);
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
    const auto [first, count] = *frame.range(i);
    for (size_t t = first; t < first + count; ++t) {
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

// A row of these kinds of arguments, called with those of a frame.
template <class... Kinds>
struct Row {
  using Function = void (*)(typename Kinds::Value...);

  static void call(Function row, const Frame& frame) {
    call(row, frame, std::index_sequence_for<Kinds...>());
  }

 private:
  template <size_t... I>
  static void call(Function row, const Frame& frame, std::index_sequence<I...>) {
    row(Kinds::get(frame, I)...);
  }
};

}  // namespace aclnn_host

#define ACLNN_PARENTHESES ()
#define ACLNN_EXPAND(...) ACLNN_EXPAND3(ACLNN_EXPAND3(ACLNN_EXPAND3(ACLNN_EXPAND3(__VA_ARGS__))))
#define ACLNN_EXPAND3(...) ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2(ACLNN_EXPAND2(__VA_ARGS__))))
#define ACLNN_EXPAND2(...) ACLNN_EXPAND1(ACLNN_EXPAND1(ACLNN_EXPAND1(ACLNN_EXPAND1(__VA_ARGS__))))
#define ACLNN_EXPAND1(...) __VA_ARGS__
#define ACLNN_EACH(macro, first, ...) \
  macro first __VA_OPT__(, ACLNN_EACH_AGAIN ACLNN_PARENTHESES(macro, __VA_ARGS__))
#define ACLNN_EACH_AGAIN() ACLNN_EACH
// macro applied to each of the parenthesised pairs, with commas between.
#define ACLNN_FOR_EACH(macro, ...) ACLNN_EXPAND(ACLNN_EACH(macro, __VA_ARGS__))

#define ACLNN_KIND(kind, name) ::aclnn_host::Kind<kind>
#define ACLNN_PARAMETER(kind, name) typename ::aclnn_host::Kind<kind>::C name
#define ACLNN_VALUE(kind, name) typename ::aclnn_host::Kind<kind>::Value name
#define ACLNN_TRACED(kind, name) \
  ::aclnn_host::Named {          \
    #name, name                  \
  }
#define ACLNN_ADD(kind, name) ::aclnn_host::Kind<kind>::add(stage, #name, name)

// The signature of every row stands in the section aclnn_rows of the library, for whoever asks what
// there is: "aclnnAdd (In, self), (In, other), (Number, alpha), (Out, out)".
#define ACLNN(Name, ...) ACL_FUNCTION(aclnn##Name, __VA_ARGS__)
#define ACL_FUNCTION(api, ...)                                                                  \
  [[gnu::section("aclnn_rows"), gnu::used]] static const char signature_##api[] =               \
      #api " " #__VA_ARGS__;                                                                    \
  static void row_##api(ACLNN_FOR_EACH(ACLNN_VALUE, __VA_ARGS__));                              \
  extern "C" ACL_FUNC_VISIBILITY aclnnStatus api##GetWorkspaceSize(                             \
      ACLNN_FOR_EACH(ACLNN_PARAMETER, __VA_ARGS__), uint64_t* workspaceSize,                    \
      aclOpExecutor** executor) {                                                               \
    const std::tuple given{ACLNN_FOR_EACH(ACLNN_TRACED, __VA_ARGS__)};                          \
    return ::aclnn_host::stage1(#api, given, [&] {                                              \
      ::aclnn_host::Preparation stage(#api, workspaceSize, executor);                           \
      ACLNN_FOR_EACH(ACLNN_ADD, __VA_ARGS__);                                                   \
      return stage.finish([](const ::aclnn_host::Frame& frame) {                                \
        ::aclnn_host::Row<ACLNN_FOR_EACH(ACLNN_KIND, __VA_ARGS__)>::call(row_##api, frame);     \
      });                                                                                       \
    });                                                                                         \
  }                                                                                             \
  extern "C" ACL_FUNC_VISIBILITY aclnnStatus api(void* workspace, uint64_t workspaceSize,       \
                                                 aclOpExecutor* executor, aclrtStream stream) { \
    return ::aclnn_host::launch(#api, workspace, workspaceSize, executor, stream);              \
  }                                                                                             \
  static void row_##api(ACLNN_FOR_EACH(ACLNN_VALUE, __VA_ARGS__))

// Rows of the shapes that most operators have; `call` is a function of ATen, and the other tensor
// or number stands on its right.
#define ACLNN_UNARY_OF(Kind, Name, call)  \
  ACLNN(Name, (Kind, self), (Out, out)) { \
    out = call(self);                     \
  }
#define ACLNN_INPLACE_UNARY_OF(Kind, Name, call) \
  ACLNN(Inplace##Name, (Kind, selfRef)) {        \
    selfRef = call(selfRef);                     \
  }
#define ACLNN_BINARY_OF(Kind, Other, Name, call)          \
  ACLNN(Name, (Kind, self), (Other, other), (Out, out)) { \
    out = call(self, other);                              \
  }
#define ACLNN_INPLACE_BINARY_OF(Kind, Other, Name, call)  \
  ACLNN(Inplace##Name, (Kind, selfRef), (Other, other)) { \
    selfRef = call(selfRef, other);                       \
  }

#define ACLNN_UNARY(Name, call) ACLNN_UNARY_OF(In, Name, call)
#define ACLNN_INPLACE_UNARY(Name, call) ACLNN_INPLACE_UNARY_OF(InOut, Name, call)
#define ACLNN_BINARY(Name, call) ACLNN_BINARY_OF(In, In, Name, call)
#define ACLNN_BINARY_NUMBER(Name, call) ACLNN_BINARY_OF(In, Number, Name, call)
#define ACLNN_INPLACE_BINARY(Name, call) ACLNN_INPLACE_BINARY_OF(InOut, In, Name, call)
#define ACLNN_INPLACE_BINARY_NUMBER(Name, call) ACLNN_INPLACE_BINARY_OF(InOut, Number, Name, call)
