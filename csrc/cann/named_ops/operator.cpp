// Calls of named operators: descriptions become tensors, the operator takes them like a row's
// arguments, and the stream runs it.
#include "cann/named_ops/operator.h"

#include <charconv>
#include <new>
#include <unordered_map>

#include "acl/acl_rt.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host {
namespace {

// The list of operators, linked by their constructors.
const NamedOperator* first = nullptr;

const NamedOperator* find(std::string_view name) {
  static const auto* const operators = [] {
    auto* by_name = new std::unordered_map<std::string_view, const NamedOperator*>;
    for (const NamedOperator* each = first; each != nullptr; each = each->next) {
      by_name->emplace(each->name, each);
    }
    return by_name;
  }();
  const auto found = operators->find(name);
  return found == operators->end() ? nullptr : found->second;
}

bool is_absent(const aclTensorDesc& desc) {
  return desc.type == ACL_DT_UNDEFINED;
}

bool is_on_host(const aclTensorDesc& desc) {
  return desc.place != ACL_MEMTYPE_DEVICE;
}

// A failed call of the runtime, which has recorded its error message.
struct Failed {
  aclError status;
};

void expect_success(aclError status) {
  if (status != ACL_SUCCESS) throw Failed{status};
}

// Device memory with a copy of host memory.
std::shared_ptr<void> on_device(const void* values, size_t size) {
  void* memory = nullptr;
  expect_success(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
  std::shared_ptr<void> owned(memory, aclrtFree);
  expect_success(aclrtMemcpy(memory, size, values, size, ACL_MEMCPY_HOST_TO_DEVICE));
  return owned;
}

// The number of elements in this many bytes, for any size.
int64_t elements_in(size_t size, aclDataType type) {
  const int64_t bits = element_bits(type);
  if (bits <= 0) return 0;
  const auto whole = static_cast<int64_t>(std::min<size_t>(size, INT64_MAX / 8));
  return whole * 8 / bits;
}

// The tensor of a description and a buffer.
std::unique_ptr<const aclTensor, DestroyElement> tensor_of(const aclTensorDesc& desc, void* data,
                                                           size_t size) {
  const bool has_format = desc.storage_format != ACL_FORMAT_UNDEFINED;
  const aclFormat format = has_format ? desc.storage_format : desc.format;
  const bool is_blocked = is_private(format);
  const int64_t count = elements_in(size, desc.type);
  // The last size of a private format is the width of its blocks.
  const std::vector<int64_t> storage = is_blocked ? desc.storage_dims : std::vector{count};
  aclTensor* const tensor =
      aclCreateTensor(desc.dims.data(), desc.dims.size(), desc.type, nullptr, 0,
                      is_blocked ? format : ACL_FORMAT_ND, storage.data(), storage.size(), data);
  if (tensor == nullptr) throw std::bad_alloc();
  tensor->view.storage_count = count;
  return std::unique_ptr<const aclTensor, DestroyElement>(tensor);
}

const aclTensor* take_next(const aclTensorList& list, size_t* taken) {
  return *taken < list.elements.size() ? list.elements[(*taken)++].get() : nullptr;
}

void take_rest(aclTensorList& list, size_t* taken, aclTensorList* rest) {
  for (; *taken < list.elements.size(); ++*taken) {
    rest->elements.push_back(std::move(list.elements[*taken]));
  }
}

// Converts the status of a row to that of CANN's runtime.
aclError status_of(aclnnStatus status) {
  switch (status) {
    case OK: return ACL_SUCCESS;
    case ACLNN_ERR_PARAM_NULLPTR:
    case ACLNN_ERR_PARAM_INVALID: return ACL_ERROR_INVALID_PARAM;
    default: return ACL_ERROR_INTERNAL_ERROR;
  }
}

// Waits, and writes the shapes that depend on the data.
aclError finish(const NamedCall& call, const aclTensorList& outputs) {
  if (call.written_descs.empty()) return ACL_SUCCESS;
  if (const aclError status = aclrtSynchronizeStream(call.stream)) return status;
  for (size_t i = 0; i < outputs.elements.size(); ++i) {
    const aclTensor* const output = outputs.elements[i].get();
    if (output == nullptr || output->written_shape == nullptr) continue;
    const Dims& shape = *output->written_shape;
    call.written_descs[i]->dims.assign(shape.begin(), shape.end());
  }
  return ACL_SUCCESS;
}

aclError execute(const NamedCall& call, const NamedOperator& op) {
  NamedArguments arguments(call);
  aclOpExecutor* executor = nullptr;
  uint64_t workspace_size = 0;
  const Given given[] = {Named{"inputs", &arguments.inputs()},
                         Named{"outputs", &arguments.outputs()}};
  aclnnStatus status = stage1(op.api, given, [&]() -> aclnnStatus {
    Preparation stage(op.api, &workspace_size, &executor);
    try {
      return op.prepare(arguments, stage);
    } catch (const Refusal& refusal) {
      return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s", op.api, refusal.what());
    } catch (const c10::Error& error) {
      return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s", op.api, error.what_without_backtrace());
    }
  });
  if (status == OK) status = launch(op.api, nullptr, workspace_size, executor, call.stream);
  return status == OK ? finish(call, arguments.outputs()) : status_of(status);
}

aclError run(const NamedCall& call) {
  const NamedOperator* const op = find(call.type);
  if (op == nullptr) {
    return fail(ACL_ERROR_FEATURE_UNSUPPORTED,
                "%s: the host CANN has no operator %s among those called by name (aclop); compute "
                "this on the CPU, or on an Ascend machine",
                call.api, call.type);
  }
  try {
    return execute(call, *op);
  } catch (const Failed& failed) {
    return fail(failed.status, "%s: the values in host memory do not reach the device", op->api);
  }
}

const bool is_registered = (register_named_operators(run), true);

bool is_empty_list(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& held) {
        if constexpr (std::same_as<T, std::string> || std::is_arithmetic_v<T>) {
          return false;
        } else {
          return held.empty();
        }
      },
      value);
}

// The value of a number, true or false in a text; NaN for other texts.
double number_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  double number = NAN;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool is_text(const AttributeValue& value, std::string_view text) {
  return std::visit(
      [&]<class T>(const T& held) {
        if constexpr (std::same_as<T, std::string>) {
          return held == text;
        } else if constexpr (std::is_arithmetic_v<T>) {
          const double number = number_of(text);
          // torch_npu may have set a text as a bool (see Attribute); its value is arbitrary.
          return static_cast<double>(held) == number ||
                 (std::same_as<T, bool> && std::isnan(number));
        } else {
          return false;
        }
      },
      value);
}

template <class T>
std::optional<T> number(const Frame& frame, size_t i) {
  const auto* const scalar = std::get_if<c10::Scalar>(&frame.slots[i]);
  if (scalar != nullptr) {
    if constexpr (std::same_as<T, int64_t>) {
      if (scalar->isFloatingPoint()) return integer_of(frame.names[i], scalar->toDouble());
    }
    return scalar->to<T>();
  }
  EXPECT(std::holds_alternative<std::monostate>(frame.slots[i]), "attribute ", frame.names[i],
         " is a text or a list, expected a number");
  return std::nullopt;
}

template <class To, class From>
std::optional<To> list(const Frame& frame, size_t i) {
  const Slot& slot = frame.slots[i];
  if (const auto* const values = std::get_if<To>(&slot)) return *values;
  if (const auto* const values = std::get_if<From>(&slot)) {
    To converted;
    for (const auto value : *values) {
      if constexpr (std::same_as<To, Integers>) {
        converted.push_back(integer_of(frame.names[i], value));
      } else {
        converted.push_back(static_cast<double>(value));
      }
    }
    return converted;
  }
  EXPECT(std::holds_alternative<std::monostate>(slot), "attribute ", frame.names[i],
         " is a number or a text, expected a list");
  return std::nullopt;
}

}  // namespace

NamedOperator::NamedOperator(std::string_view name, const char* api, Prepare prepare)
    : name(name), api(api), prepare(prepare), next(std::exchange(first, this)) {}

NamedArguments::NamedArguments(const NamedCall& call) : call_(call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const aclTensorDesc& desc = *call.input_descs[i];
    const aclDataBuffer& buffer = *call.inputs[i];
    if (is_absent(desc)) {
      inputs_.elements.emplace_back();
      continue;
    }
    void* data = buffer.data;
    if (is_on_host(desc) && data != nullptr && buffer.size > 0) {
      memory_.push_back(on_device(data, buffer.size));
      data = const_cast<void*>(memory_.back().get());
    }
    inputs_.elements.push_back(tensor_of(desc, data, buffer.size));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const aclTensorDesc& desc = *call.output_descs[i];
    const aclDataBuffer& buffer = *call.outputs[i];
    if (is_absent(desc)) {
      outputs_.elements.emplace_back();
    } else {
      outputs_.elements.push_back(tensor_of(desc, buffer.data, buffer.size));
    }
  }
}

const aclTensor* NamedArguments::next_input() {
  return take_next(inputs_, &inputs_taken_);
}

aclTensor* NamedArguments::next_output() {
  return const_cast<aclTensor*>(take_next(outputs_, &outputs_taken_));
}

const aclTensorList* NamedArguments::other_inputs() {
  take_rest(inputs_, &inputs_taken_, &lists_.emplace_back());
  return &lists_.back();
}

aclTensorList* NamedArguments::other_outputs() {
  take_rest(outputs_, &outputs_taken_, &lists_.emplace_back());
  return &lists_.back();
}

at::Tensor NamedArguments::next_values(const char* name) {
  const size_t i = inputs_taken_;
  const aclTensor* const input = next_input();
  EXPECT(input != nullptr, name, " is absent, expected values in host memory");
  const aclTensorDesc& desc = *call_.input_descs[i];
  const aclDataBuffer& buffer = *call_.inputs[i];
  const bool has_constant = !desc.constant.empty();
  EXPECT(has_constant || is_on_host(desc), name,
         " is in device memory, expected values in host memory (aclSetTensorPlaceMent) or a "
         "constant (aclSetTensorConst)");
  const at::ScalarType type = aten_type(desc.type);
  EXPECT(type != at::ScalarType::Undefined, name, " has dtype ", dtype_name(desc.type),
         ", which the host CANN does not emulate here");
  const size_t size = has_constant ? desc.constant.size() : buffer.size;
  const int64_t count = element_count(input->view.shape).value_or(-1);
  EXPECT(count >= 0 && static_cast<uint64_t>(count) * c10::elementSize(type) <= size, name,
         " has shape ", shape_text(input->view.shape), ", but ", size, " bytes of values");
  if (count == 0) return at::empty({0}, type);
  void* const values = has_constant ? const_cast<char*>(desc.constant.data()) : buffer.data;
  EXPECT(values != nullptr, name, " has ", count, " values at a null address");
  return at::from_blob(values, {count}, type).clone();
}

const AttributeValue* NamedArguments::attribute(const char* name) {
  attributes_taken_.push_back(name);
  if (call_.attributes == nullptr) return nullptr;
  const auto found = call_.attributes->values.find(name);
  return found == call_.attributes->values.end() ? nullptr : &found->second;
}

void NamedArguments::give_memory(Preparation& stage) {
  for (auto& memory : memory_) stage.keep(std::move(memory));
}

void NamedArguments::expect_all_taken() const {
  EXPECT(inputs_taken_ >= inputs_.elements.size(), "the call has ", inputs_.elements.size(),
         " inputs, expected at most ", inputs_taken_);
  EXPECT(outputs_taken_ >= outputs_.elements.size(), "the call has ", outputs_.elements.size(),
         " outputs, expected at most ", outputs_taken_);
  if (call_.attributes == nullptr) return;
  for (const auto& [name, value] : call_.attributes->values) {
    EXPECT(name.starts_with('_') || is_empty_list(value) ||
               std::ranges::find(attributes_taken_, name) != attributes_taken_.end(),
           "the host CANN does not know attribute ", name, " of this operator");
  }
}

void expect_value(const char* name, const AttributeValue* value, std::string_view values,
                  bool may_be_absent) {
  EXPECT(value != nullptr || may_be_absent, "attribute ", name, " is absent; set it to ", values,
         ", which alone the host CANN emulates");
  if (value == nullptr) return;
  for (std::string_view rest = values; !rest.empty();) {
    const size_t end = std::min(rest.find('|'), rest.size());
    if (is_text(*value, rest.substr(0, end))) return;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  EXPECT(false, "attribute ", name, " is not ", values, ", which alone the host CANN emulates");
}

void expect_repeats(const char* name, const std::optional<Integers>& sizes, const char* tensor_name,
                    const at::Tensor& tensor) {
  if (!sizes) return;
  const at::IntArrayRef found = *sizes, shape = tensor.sizes();
  const at::IntArrayRef last = shape.slice(shape.size() - std::min(found.size(), shape.size()));
  // CANN describes a tensor without dimensions as one of one element.
  const bool is_of_scalar = shape.empty() && found == at::IntArrayRef{1};
  EXPECT(found == last || is_of_scalar, name, " is ", found, ", expected ", last,
         ", as the shape of ", tensor_name, " is");
}

int64_t integer_of(const char* name, double number) {
  EXPECT(number >= -0x1p63 && number < 0x1p63 && number == std::trunc(number), name, " has ",
         number, ", expected integers");
  return static_cast<int64_t>(number);
}

std::vector<int64_t> integers_of(const at::Tensor& values) {
  EXPECT(at::isIntegralType(values.scalar_type(), /*includeBool=*/true),
         "the values of an input in host memory are of dtype ", dtype_text(values.scalar_type()),
         ", expected integers");
  const at::Tensor integers = values.to(at::kLong);
  const auto* const begin = integers.const_data_ptr<int64_t>();
  return {begin, begin + integers.numel()};
}

std::vector<double> floats_of(const at::Tensor& values) {
  const at::Tensor floats = values.to(at::kDouble);
  const auto* const begin = floats.const_data_ptr<double>();
  return {begin, begin + floats.numel()};
}

Slot slot_of(const char* name, const AttributeValue* value) {
  if (value == nullptr) return std::monostate();
  return std::visit(
      [&]<class T>(const T& held) -> Slot {
        if constexpr (std::same_as<T, std::vector<std::vector<int64_t>>>) {
          EXPECT(false, "attribute ", name, " is a list of lists, which no operator here has");
        } else if constexpr (std::is_arithmetic_v<T>) {
          return c10::Scalar(held);
        } else {
          return held;
        }
      },
      *value);
}

template <>
Attribute<bool>::Value Attribute<bool>::get(const Frame& frame, size_t i) {
  return number<bool>(frame, i);
}
template <>
Attribute<int64_t>::Value Attribute<int64_t>::get(const Frame& frame, size_t i) {
  return number<int64_t>(frame, i);
}
template <>
Attribute<double>::Value Attribute<double>::get(const Frame& frame, size_t i) {
  return number<double>(frame, i);
}
template <>
Attribute<std::string>::Value Attribute<std::string>::get(const Frame& frame, size_t i) {
  const auto* const text = std::get_if<std::string>(&frame.slots[i]);
  if (text != nullptr) return *text;
  const auto* const scalar = std::get_if<c10::Scalar>(&frame.slots[i]);
  if (scalar != nullptr && scalar->isBoolean()) return std::nullopt;
  EXPECT(std::holds_alternative<std::monostate>(frame.slots[i]), "attribute ", frame.names[i],
         " is a number or a list, expected a text");
  return std::nullopt;
}
template <>
Attribute<Integers>::Value Attribute<Integers>::get(const Frame& frame, size_t i) {
  return list<Integers, Numerals>(frame, i);
}
template <>
Attribute<Numerals>::Value Attribute<Numerals>::get(const Frame& frame, size_t i) {
  return list<Numerals, Integers>(frame, i);
}

}  // namespace aclnn_host
