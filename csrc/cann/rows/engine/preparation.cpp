// Stage 1 of a row: copies and checks the arguments, then lets ATen check shapes on tensors without
// memory and dtypes in a rehearsal. Stage 2 computes.
#include "cann/rows/engine/preparation.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/MemoryOverlap.h>

#include "acl/acl_base.h"
#include "cann/rows/engine/ranks.h"
#include "cann/rows/engine/reasons.h"
#include "cann/rows/engine/refusal.h"
#include "cann/rows/engine/rehearsal.h"
#include "cann/rows/engine/row_call.h"
#include "cann/rows/engine/stored.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/descriptors/aclnn_guard.h"
#include "host_cann/descriptors/private_format.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {
namespace {

bool is_one_of(Preparation::Types types, at::ScalarType dtype) {
  switch (types) {
    case Preparation::Types::kFloating: return at::isFloatingType(dtype);
    case Preparation::Types::kFloatingOrComplex:
      return at::isFloatingType(dtype) || at::isComplexType(dtype);
    case Preparation::Types::kReal: return !at::isComplexType(dtype);
    case Preparation::Types::kIntegral: return at::isIntegralType(dtype, true);
    case Preparation::Types::kIndex: return dtype == at::kInt || dtype == at::kLong;
    default: return true;
  }
}

const char* names_of(Preparation::Types types) {
  switch (types) {
    case Preparation::Types::kFloating: return "FLOAT, FLOAT16, BFLOAT16 or DOUBLE";
    case Preparation::Types::kFloatingOrComplex:
      return "FLOAT, FLOAT16, BFLOAT16, DOUBLE or a complex type";
    case Preparation::Types::kReal: return "a real type";
    case Preparation::Types::kIntegral: return "an integer type or BOOL";
    case Preparation::Types::kIndex: return "INT32 or INT64";
    default: return "any type";
  }
}

// An empty tensor may have a dimension of any size, for which some functions of ATen allocate
// tables.
constexpr int64_t kLargestBeside0 = int64_t{1} << 27;
bool may_be_beside_0(int64_t size) {
  return size <= kLargestBeside0;
}

c10::Scalar aten_scalar(const aclScalar& scalar) {
  switch (scalar.dtype) {
    case ACL_BOOL: return c10::Scalar(scalar.integer != 0);
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_INT64: return c10::Scalar(scalar.integer);
    case ACL_UINT8:
    case ACL_UINT16:
    case ACL_UINT32: return c10::Scalar(static_cast<int64_t>(scalar.natural));
    case ACL_UINT64: return c10::Scalar(scalar.natural);
    case ACL_COMPLEX64:
    case ACL_COMPLEX128:
      return c10::Scalar(c10::complex<double>(scalar.complex[0], scalar.complex[1]));
    default: return c10::Scalar(scalar.real);
  }
}

struct RowExecutor final : aclOpExecutor {
  RowExecutor(const char* api, RowFunction row, Call&& call)
      : aclOpExecutor(api, 0), row(row), call(std::move(call)) {
    this->call.point_at_views();
  }
  RowExecutor(const RowExecutor& other) : aclOpExecutor(other), row(other.row), call(other.call) {
    call.point_at_views();
  }

  aclnnStatus compute(void*) noexcept override {
    try {
      call.run(row, with_memory, /*writes=*/true);
      return OK;
    } catch (const std::exception& error) {
      return fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s: the computation failed: %s", api,
                  reason_of(error, "the values do not fit").c_str());
    }
  }
  std::unique_ptr<aclOpExecutor> clone() const override {
    return std::make_unique<RowExecutor>(*this);
  }
  TensorArguments tensors() noexcept override {
    return {call.arguments.data(), call.arguments.size()};
  }

  RowFunction row;
  Call call;
};

}  // namespace

// The constraint that some tensors are like the first tensor of another argument.
struct Likeness {
  TensorRange tensors;
  const char* other;
  Preparation::Same same;
};

// The state of stage 1 while arguments are added.
struct Preparation::State {
  const char* api;
  uint64_t* workspace_size;
  aclOpExecutor** executor;
  Checks checks;
  Call call;
  std::vector<Argument> tensors;  // in the order of call.views
  std::vector<Types> types;       // one for each tensor
  std::vector<Allowed> allowed;   // one for each tensor
  std::vector<Likeness> likenesses;

  void add_view(const char* name, const aclTensor* tensor, Access access, size_t list,
                std::shared_ptr<Dims> shape = nullptr) {
    tensors.push_back({name, tensor});
    types.push_back(Types::kAny);
    call.views.push_back(tensor->view);
    allowed.push_back(Allowed::kNone);
    call.arguments.push_back({nullptr, access != Access::kOutput, access != Access::kInput, list});
    call.shapes.push_back(std::move(shape));
  }

  // Checks a tensor, and records the blocks if the row accepts its private format.
  void check(size_t i) {
    const Argument& argument = tensors[i];
    const Types expected = types[i];
    TensorView& view = call.views[i];
    const bool may_be_encoded = allowed[i] == Allowed::kTypesInBytes;
    const at::ScalarType type = may_be_encoded || allowed[i] == Allowed::kFormatsAndTypes
                                    ? type_of_elements(view.dtype)
                                    : aten_type(view.dtype);
    checks.require(type != at::ScalarType::Undefined,
                   "%s has dtype %s (%d), which the host CANN does not emulate here; cast the "
                   "tensor",
                   argument.name, dtype_name(view.dtype), static_cast<int>(view.dtype));
    if (!checks.ok()) return;
    const bool may_be_blocked =
        !may_be_encoded && allowed[i] != Allowed::kNone && is_private(view.format);
    // A tensor whose view shape is already that of the blocks is read without reordering.
    const bool is_blocked =
        may_be_blocked && (view.format != ACL_FORMAT_NC1HWC0 || view.shape.size() != 5);
    if (is_blocked) {
      view.block_width = block_width_of(view, argument.tensor->storage_shape);
    } else if (!may_be_blocked && view.format != ACL_FORMAT_NC) {  // operators do not accept NC
      checks.format_like_nd(argument);
    }
    const bool has_blocks = !is_blocked || padded_count(view);
    const bool has_allowed_sizes =
        element_count(view.shape) != 0 || std::ranges::all_of(view.shape, may_be_beside_0);
    const std::string shape = has_blocks && has_allowed_sizes ? "" : shape_text(view.shape);
    checks
        .require(!is_blocked || view.offset == 0,
                 "%s has offset %lld in a private format, expected 0", argument.name,
                 static_cast<long long>(view.offset))
        .require(has_blocks, "%s has shape %s, which format %d does not have", argument.name,
                 shape.c_str(), static_cast<int>(view.format))
        .require(is_one_of(expected, type), "%s has dtype %s, expected %s; cast the tensor",
                 argument.name, dtype_name(view.dtype), names_of(expected))
        .require(view.dtype != ACL_BF16 || has_bfloat16(checks.product()),
                 "%s has dtype BFLOAT16, which this product does not have; cast the tensor",
                 argument.name)
        .require(has_allowed_sizes,
                 "%s has shape %s, which has no elements; the host CANN computes sizes up to %lld "
                 "beside one of 0",
                 argument.name, shape.c_str(), static_cast<long long>(kLargestBeside0))
        .require(std::ranges::all_of(view.strides, [](int64_t stride) { return stride >= 0; }),
                 "%s has a negative stride, which the host CANN does not emulate; make the tensor "
                 "contiguous",
                 argument.name)
        .addressable(argument, view);
    if (may_be_encoded && is_stored_apart(view)) {
      checks.require(has_whole_bytes(view),
                     "%s has elements of 4 bits in parts of bytes, expected a last dimension of an "
                     "even size without gaps, and an even offset and other strides",
                     argument.name);
      call.in_bytes.push_back(i);
    }
    if (view.shape.size() > kMostDimensions && !takes_more_dimensions(api)) {
      checks.rank_at_most(argument, kMostDimensions);
    }
  }

  // Refuses tensors that differ from the other argument.
  void check(const Likeness& like) {
    const auto is_other = [&](const char* name) { return std::string_view(name) == like.other; };
    const auto slot = std::ranges::find_if(call.names, is_other) - call.names.begin();
    if (static_cast<size_t>(slot) == call.names.size()) return;
    const auto* const range = std::get_if<TensorRange>(&call.slots[static_cast<size_t>(slot)]);
    if (range == nullptr || range->count == 0) return;
    for (size_t i = like.tensors.first; i < like.tensors.end(); ++i) {
      const Argument& other = tensors[range->first];
      if (like.same != Same::kShape) checks.same_dtype(tensors[i], other);
      if (like.same != Same::kDtype) checks.same_shape(tensors[i], other);
    }
  }

  // Refuses an output in which two elements share memory.
  void check_overlap(size_t i) {
    const TensorView& view = call.views[i];
    if (!checks.ok() || !call.arguments[i].is_output || view.block_width > 0) return;
    // Without a stride of 0, which few outputs have, ATen is not certain that there are any.
    const bool may_alias = std::ranges::find(view.strides, 0) != view.strides.end();
    if (!may_alias || at::has_internal_overlap(without_memory(view)) != at::MemOverlap::Yes) return;
    checks.require(false,
                   "%s (shape %s, strides %s) has elements that alias one another; pass an output "
                   "in which every element has its own memory",
                   tensors[i].name, shape_text(view.shape).c_str(),
                   shape_text(view.strides).c_str());
  }
};

Preparation::Preparation(const char* api, uint64_t* workspace_size, aclOpExecutor** executor) {
  state_.reset(new State{api, workspace_size, executor, Checks(api), {}, {}, {}, {}, {}});
  state_->checks.results_not_null(workspace_size, executor);
}

Preparation::~Preparation() = default;

// Copies an argument with body(), unless it is null or an earlier one was refused. An optional
// argument that is null gets an empty slot.
template <class Body>
void Preparation::add(const char* name, const void* pointer, bool required, Body body) {
  if (required) state_->checks.not_null(name, pointer);
  if (!state_->checks.ok()) return;
  state_->call.names.push_back(name);
  state_->call.slots.push_back(pointer ? body() : Slot());
}

void Preparation::add_tensor(const char* name, const aclTensor* tensor, bool required,
                             Access access) {
  add(name, tensor, required, [&]() -> Slot {
    state_->add_view(name, tensor, access, 0);
    return TensorRange{state_->call.views.size() - 1, 1};
  });
}

void Preparation::add_list(const char* name, const aclTensorList* list, bool required,
                           Access access) {
  add(name, list, required, [&]() -> Slot {
    const TensorRange range{state_->call.views.size(), list->elements.size(), /*is_list=*/true};
    for (const auto& tensor : list->elements) {
      state_->checks.not_null(name, tensor.get());
      if (!state_->checks.ok()) break;
      state_->add_view(name, tensor.get(), access, state_->call.slots.size() + 1);
    }
    return range;
  });
}

void Preparation::add_sized(const char* name, aclTensor* tensor) {
  add(name, tensor, true, [&]() -> Slot {
    state_->checks.require(is_contiguous(tensor->view),
                           "%s is not contiguous, expected a contiguous output because the shape "
                           "of the result depends on the data; pass a contiguous tensor",
                           name);
    tensor->written_shape = std::make_shared<Dims>(tensor->view.shape);
    state_->add_view(name, tensor, Access::kOutput, 0, tensor->written_shape);
    return TensorRange{state_->call.views.size() - 1, 1};
  });
}

void Preparation::add_scalar(const char* name, const aclScalar* scalar, bool required) {
  add(name, scalar, required, [&]() -> Slot { return aten_scalar(*scalar); });
}

template <class Value>
void Preparation::add_numbers(const char* name, const aclScalarList* scalars) {
  add(name, scalars, true, [&]() -> Slot {
    std::vector<Value> values;
    for (const auto& scalar : scalars->elements) {
      state_->checks.not_null(name, scalar.get());
      if (!state_->checks.ok()) break;
      values.push_back({aten_scalar(*scalar)});
    }
    return values;
  });
}

void Preparation::add_scalars(const char* name, const aclScalarList* scalars) {
  add_numbers<c10::Scalar>(name, scalars);
}

void Preparation::add_any_number(const char* name, const aclScalar* scalar) {
  add(name, scalar, true, [&]() -> Slot { return AnyValue{aten_scalar(*scalar)}; });
}

void Preparation::add_any_numbers(const char* name, const aclScalarList* scalars) {
  add_numbers<AnyValue>(name, scalars);
}

void Preparation::add_ints(const char* name, const aclIntArray* values, bool required) {
  add(name, values, required, [&]() -> Slot {
    return std::vector<int64_t>(values->values.get(), values->values.get() + values->size);
  });
}

void Preparation::add_floats(const char* name, const aclFloatArray* values, bool required) {
  add(name, values, required, [&]() -> Slot {
    return std::vector<double>(values->values.get(), values->values.get() + values->size);
  });
}

void Preparation::add_bools(const char* name, const aclBoolArray* values, bool required) {
  add(name, values, required, [&]() -> Slot {
    return std::vector<bool>(values->values.get(), values->values.get() + values->size);
  });
}

void Preparation::add_text(const char* name, const char* text, bool required) {
  add(name, text, required, [&]() -> Slot { return std::string(text); });
}

void Preparation::add_dtype(const char* name, aclDataType dtype) {
  const at::ScalarType type = aten_type(dtype);
  state_->checks.require(type != at::ScalarType::Undefined,
                         "%s is %d, expected a data type that the host CANN supports", name,
                         static_cast<int>(dtype));
  add(name, this, false, [&]() -> Slot { return type; });
}

void Preparation::add_value(const char* name, c10::Scalar value) {
  add(name, this, false, [&]() -> Slot { return value; });
}

void Preparation::add_slot(const char* name, Slot value) {
  add(name, this, false, [&]() -> Slot { return std::move(value); });
}

void Preparation::keep(std::shared_ptr<const void> memory) {
  state_->call.kept.push_back(std::move(memory));
}

void Preparation::expect_null(const char* name, const void* argument, const char* reason) {
  state_->checks.require(argument == nullptr, "%s is given, expected null: %s", name, reason);
}

void Preparation::expect(Types types) {
  set_of_last(state_->types, types);
}

void Preparation::expect_same(Same same, const char* other) {
  if (!state_->checks.ok()) return;
  const auto* const range = std::get_if<TensorRange>(&state_->call.slots.back());
  if (range != nullptr) state_->likenesses.push_back({*range, other, same});
}

void Preparation::allow(Allowed allowed) {
  set_of_last(state_->allowed, allowed);
}

// Sets the value for all tensors of the argument added last.
template <class Value>
void Preparation::set_of_last(std::vector<Value>& values, Value value) {
  if (!state_->checks.ok()) return;
  const auto* const range = std::get_if<TensorRange>(&state_->call.slots.back());
  if (range == nullptr) return;
  for (size_t i = range->first; i < range->end(); ++i) values[i] = value;
}

void Preparation::write_once() {
  if (!state_->checks.ok()) return;
  TensorView& view = state_->call.views.back();
  for (uint64_t d = 0; d < view.shape.size(); ++d) {
    if (view.strides[d] == 0 && view.shape[d] > 1) view.shape.begin()[d] = 1;
  }
}

void Preparation::transpose_blocks() {
  if (!state_->checks.ok()) return;
  TensorView& view = state_->call.views.back();
  const uint64_t rank = view.shape.size();
  if (!is_fractal_nz(view.format) || rank < 2) return;
  view.strides.begin()[rank - 2] = 1;
  view.strides.begin()[rank - 1] = view.shape[rank - 2];
}

aclnnStatus Preparation::finish(RowFunction row) {
  const AtenScope scope;
  Checks& checks = state_->checks;
  for (size_t i = 0; i < state_->tensors.size(); ++i) {
    state_->check(i);
    state_->check_overlap(i);
  }
  for (const Likeness& like : state_->likenesses) state_->check(like);
  if (!checks.ok()) return checks.status();
  try {
    const std::string refusal = refusal_of_aten(row, state_->call, state_->tensors);
    if (!refusal.empty()) return checks.require(false, "%s", refusal.c_str()).status();
  } catch (const NullArgument& missing) {
    return checks.require_present(false, "%s", missing.what()).status();
  }
  *state_->executor =
      hand_out(std::make_unique<RowExecutor>(state_->api, row, std::move(state_->call)));
  *state_->workspace_size = 0;
  return OK;
}

}  // namespace aclnn_host