// Mutants of values: the outputs of a function are changed before its caller sees them.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host_cann/descriptors/executor.h"
#include "settings_and_log.h"

namespace aclnn_host {
namespace {

// The elements of a view, in the order of its shape. Elements that share bytes or lie in blocks are
// treated as bytes.
class Elements {
 public:
  explicit Elements(const TensorView& view) : dtype(view.dtype), size(aclDataTypeSize(view.dtype)) {
    const Region region = region_of(view);
    begin_ = static_cast<const char*>(region.begin);
    end_ = begin_ + region.size;
    if (view.block_width != 0 || element_bits(view.dtype) < 8) {
      dtype = ACL_UINT8;
      size = 1;
      for (const char* at = begin_; at != end_; ++at) places_.push_back(const_cast<char*>(at));
      row_ = 1;
      return;
    }
    const int64_t count = element_count(view.shape).value_or(0);
    const int64_t rows = view.shape.size() == 0 ? 1 : view.shape[0];
    row_ = rows > 0 ? static_cast<size_t>(count / rows) : 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, place = 0;
      for (size_t d = view.shape.size(); d-- > 0; rest /= view.shape[d])
        place += rest % view.shape[d] * view.strides[d];
      places_.push_back(view.data() + place * static_cast<int64_t>(size));
    }
  }

  size_t count() const { return places_.size(); }
  size_t row() const { return row_; }
  char* operator[](size_t i) const { return places_[i]; }
  bool equal(size_t i, size_t j) const { return std::memcmp(places_[i], places_[j], size) == 0; }

  std::string bytes() const {
    std::string bytes;
    for (const char* place : places_) bytes.append(place, size);
    return bytes;
  }
  void put(size_t i, const char* value) const { std::memcpy(places_[i], value, size); }

  // A byte between the elements; null without gaps.
  char* gap() const {
    if (begin_ + places_.size() * size == end_) return nullptr;
    const std::set<const char*> taken(places_.begin(), places_.end());
    for (char* place : places_) {
      char* next = place + size;
      if (next < end_ && !taken.contains(next)) return next;
    }
    return nullptr;
  }

  aclDataType dtype;
  size_t size;

 private:
  std::vector<char*> places_;
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
  size_t row_ = 0;
};

template <class Number, class Change>
void each_number(const Elements& out, Change change) {
  for (size_t i = 0; i < out.count(); ++i) {
    for (size_t part = 0; part < out.size; part += sizeof(Number)) {
      Number number;
      std::memcpy(&number, out[i] + part, sizeof number);
      number = change(number);
      std::memcpy(out[i] + part, &number, sizeof number);
    }
  }
}

void zeros(const Elements& out, const std::string&, std::span<const Elements>) {
  for (size_t i = 0; i < out.count(); ++i) std::memset(out[i], 0, out.size);
}

void constant(const Elements& out, const std::string&, std::span<const Elements>) {
  for (size_t i = 1; i < out.count(); ++i) std::memcpy(out[i], out[0], out.size);
}

void input(const Elements& out, const std::string&, std::span<const Elements> inputs) {
  for (const Elements& in : inputs) {
    if (in.dtype != out.dtype || in.count() != out.count() || in.count() == 0 || in[0] == out[0])
      continue;
    for (size_t i = 0; i < out.count(); ++i) std::memcpy(out[i], in[i], out.size);
    return;
  }
}

// Changes the middle element; for floating types, the highest bit of the exponent.
void one(const Elements& out, const std::string&, std::span<const Elements>) {
  if (out.count() == 0) return;
  char* place = out[out.count() / 2];
  switch (out.dtype) {
    case ACL_FLOAT:
    case ACL_DOUBLE:
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_COMPLEX32:
    case ACL_COMPLEX64:
    case ACL_COMPLEX128: place[out.size - 1] ^= 0x40; break;  // of the imaginary part
    default: place[0] ^= 1;
  }
}

// Exchanges two different elements.
void exchange(const Elements& out, const std::string&, std::span<const Elements>) {
  for (size_t i = 1; i < out.count(); ++i) {
    if (out.equal(0, i)) continue;
    std::swap_ranges(out[0], out[0] + out.size, out[i]);
    return;
  }
}

void sign(const Elements& out, const std::string&, std::span<const Elements>) {
  const auto negated = [](auto number) { return static_cast<decltype(number)>(-number); };
  switch (out.dtype) {
    case ACL_FLOAT:
    case ACL_COMPLEX64: return each_number<float>(out, negated);
    case ACL_DOUBLE:
    case ACL_COMPLEX128: return each_number<double>(out, negated);
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_COMPLEX32:
      return each_number<uint16_t>(
          out, [](uint16_t bits) { return static_cast<uint16_t>(bits ^ 0x8000); });
    case ACL_INT8: return each_number<int8_t>(out, negated);
    case ACL_INT16: return each_number<int16_t>(out, negated);
    case ACL_INT32: return each_number<uint32_t>(out, negated);
    case ACL_INT64: return each_number<uint64_t>(out, negated);
    default: return;
  }
}

// Adds four times the tests' tolerance: 4e-6, or four units in the last place of 16 bits.
void error(const Elements& out, const std::string&, std::span<const Elements>) {
  switch (out.dtype) {
    case ACL_FLOAT:
    case ACL_COMPLEX64:
      return each_number<float>(out, [](float number) { return number * (1 + 4e-6f); });
    case ACL_DOUBLE:
    case ACL_COMPLEX128:
      return each_number<double>(out, [](double number) { return number * (1 + 4e-6); });
    case ACL_FLOAT16:
    case ACL_BF16: {
      const int infinity = out.dtype == ACL_BF16 ? 0x7f80 : 0x7c00;
      return each_number<uint16_t>(out, [infinity](uint16_t bits) {
        const int magnitude = bits & 0x7fff;
        return static_cast<uint16_t>(magnitude == 0 || magnitude >= infinity - 4 ? bits : bits + 4);
      });
    }
    default: return;
  }
}

// Does not write the last row, or the last element of a vector.
void tail(const Elements& out, const std::string& before, std::span<const Elements>) {
  if (out.count() == 0) return;
  for (size_t i = out.count() - std::max<size_t>(out.row(), 1); i < out.count(); ++i)
    out.put(i, before.data() + i * out.size);
}

// Writes a byte between the elements.
void gap(const Elements& out, const std::string&, std::span<const Elements>) {
  if (char* byte = out.gap()) *byte ^= 1;
}

struct Mutation {
  std::string_view name;
  void (*change)(const Elements& out, const std::string& before, std::span<const Elements> inputs);
};
constexpr Mutation kMutations[] = {{"zeros", zeros}, {"constant", constant}, {"input", input},
                                   {"one", one},     {"exchange", exchange}, {"sign", sign},
                                   {"error", error}, {"tail", tail},         {"gap", gap}};

// Whether a change makes a difference; the output stays as it is.
bool makes_difference(const Mutation& mutation, const Elements& out, const std::string& before,
                      std::span<const Elements> inputs) {
  if (mutation.change == gap) return out.gap() != nullptr;
  const std::string computed = out.bytes();
  mutation.change(out, before, inputs);
  const bool is_other = out.bytes() != computed;
  for (size_t i = 0; i < out.count(); ++i) out.put(i, computed.data() + i * out.size);
  return is_other;
}

}  // namespace

// Computes, then changes the output selected by the environment, or notes what can be changed.
aclnnStatus compute_call(aclOpExecutor& executor) {
  std::vector<Elements> inputs, outputs;
  const TensorArguments tensors = executor.tensors();
  for (size_t i = 0; i < tensors.count; ++i) {
    const TensorArgument& argument = tensors.begin[i];
    if (argument.is_output) outputs.emplace_back(*argument.view);
    if (argument.is_input) inputs.emplace_back(*argument.view);
  }
  std::vector<std::string> before;
  for (const Elements& out : outputs) before.push_back(out.bytes());
  const aclnnStatus status = executor.compute(executor.workspace);
  if (status != ACL_SUCCESS) return status;

  mutants::note(executor.api, mutants::kCall);
  const std::string kind = mutants::change_of(executor.api);
  const std::string index = mutants::setting("ACLNN_TEST_MUTANT_OUTPUT");
  const bool is_sound = mutants::setting("ACLNN_TEST_MUTANT").empty();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Elements& out = outputs[i];
    for (const Mutation& mutation : kMutations) {
      if (mutation.name == kind && std::to_string(i) == index)
        mutation.change(out, before[i], inputs);
      if (is_sound && makes_difference(mutation, out, before[i], inputs))
        mutants::note(executor.api, static_cast<int>(i), std::string(mutation.name));
    }
  }
  return status;
}

}  // namespace aclnn_host
