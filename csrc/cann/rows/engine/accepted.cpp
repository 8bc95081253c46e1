#include "cann/rows/engine/accepted.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>

#include "host_cann/runtime/product.h"

namespace aclnn_host {
namespace {

class Fingerprint {
 public:
  Fingerprint(RowFunction row, const Call& call, Aspect aspect) : aspect_(aspect) {
    add(row);
    add(aspect);
    add(current_product());
    for (const Slot& slot : call.slots) {
      add(slot.index());
      std::visit([&](const auto& value) { add(value); }, slot);
    }
    for (const TensorView& view : call.views) {
      add(view.dtype);
      add(view.format);
      if (aspect == Aspect::kShapes) {
        add(view.shape);
        add(view.strides);
      } else {
        // The rehearsal of an empty tensor shows nothing about one that has elements.
        add(view.shape.size());
        add(element_count(view.shape).value_or(0) == 0);
      }
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <class T>
    requires requires(const T& values) {
      values.begin();
      values.size();
    }
  void add(const T& values) {
    add(values.size());
    for (const auto& value : values) add(value);
  }
  void add(std::monostate) {}
  void add(int64_t value) {
    // Modes, which are small numbers, select the kernel; seeds and sizes do not. (The run without
    // memory already checks the number itself.)
    if (aspect_ == Aspect::kDtypes && (value < 0 || value > 8)) value = -1;
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void add(const TensorRange& range) {
    add(range.first);
    add(range.count);
  }
  void add(const AnyValue& value) {
    add(value.number.type());
    add_order(value.number);
  }
  void add(const c10::Scalar& scalar) {
    add(scalar.type());
    if (aspect_ == Aspect::kDtypes) {
      add_order(scalar);
      if (!scalar.isIntegral(true)) return;
    }
    if (scalar.type() == at::kUInt64) return add(scalar.toUInt64());
    if (scalar.isIntegral(true)) return add(scalar.toLong());
    add(scalar.toComplexDouble().real());
    add(scalar.toComplexDouble().imag());
  }
  // Adds which types can hold the number: ATen refuses to convert one that is too large.
  void add_order(const c10::Scalar& scalar) {
    constexpr double kMost[] = {
        127,    128,    255,        32767,          32768,
        65504,  65535,  2147483647, 2147483648,     4294967295,
        0x1p63, 0x1p64, 0x1.FEp127, 0x1.FFFFFEp127, std::numeric_limits<double>::max()};
    for (const double part : {scalar.toComplexDouble().real(), scalar.toComplexDouble().imag()}) {
      add(static_cast<int>(
          std::ranges::count_if(kMost, [&](double most) { return std::abs(part) <= most; })));
      add(std::signbit(part));
      add(std::isnan(part));
    }
  }

  Aspect aspect_;
  std::string bytes_;
};

class Accepted {
 public:
  bool contains(const std::string& call) {
    const std::lock_guard lock(mutex_);
    return calls_.contains(call);
  }
  void add(std::string call) {
    const std::lock_guard lock(mutex_);
    if (bytes_ + call.size() > kMostBytes) {
      calls_.clear();
      bytes_ = 0;
    }
    const size_t size = call.size();
    if (calls_.insert(std::move(call)).second) bytes_ += size;
  }

 private:
  static constexpr size_t kMostBytes = 4 << 20;
  std::mutex mutex_;
  std::unordered_set<std::string> calls_;
  size_t bytes_ = 0;  // of all calls
};

Accepted& accepted() {
  static auto* calls = new Accepted;  // never destroyed: threads may outlast the statics
  return *calls;
}

}  // namespace

std::string fingerprint(RowFunction row, const Call& call, Aspect aspect) {
  return Fingerprint(row, call, aspect).take();
}

bool was_accepted(const std::string& fingerprint) {
  return accepted().contains(fingerprint);
}

void note_accepted(std::string fingerprint) {
  accepted().add(std::move(fingerprint));
}

}  // namespace aclnn_host
