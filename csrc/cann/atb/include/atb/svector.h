// ATB's container: the tensors and descriptions of a call. Programs share it with the library, so
// the order of its members is part of the interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <new>
#include <ostream>
#include <stdexcept>

namespace atb {

constexpr std::size_t MAX_SVECTOR_SIZE = 256;
constexpr std::size_t DEFAULT_SVECTOR_SIZE = 64;
constexpr bool CHECK_BOUND = true;

// Thrown where a vector would get more than MAX_SVECTOR_SIZE elements.
struct MaxSizeExceeded : public std::exception {};

// At most MAX_SVECTOR_SIZE elements. The first DEFAULT_SVECTOR_SIZE are inside the object; a vector
// that grows beyond them moves to the heap and stays there.
template <class T>
class SVector {
 public:
  SVector() = default;
  SVector(std::initializer_list<T> list) { assign(list.begin(), list.size()); }
  explicit SVector(std::size_t size, const T& value = 0) {
    make_room(size);
    std::fill_n(data(), size, value);
    size_ = size;
  }
  SVector(const SVector& other) { assign(other.data(), other.size_); }
  SVector& operator=(const SVector& other) {
    if (this != &other) assign(other.data(), other.size_);
    return *this;
  }
  SVector& operator=(std::initializer_list<T> list) {
    assign(list.begin(), list.size());
    return *this;
  }
  ~SVector() {
    if (heap_ == nullptr) return;
    for (std::size_t i = 0; i < capacity_; ++i) heap_[i].~T();
    std::free(heap_);
  }

  void push_back(const T& value) {
    const T copy = value;  // it may be an element
    make_room(size_ + 1);
    data()[size_++] = copy;
  }
  void insert(std::size_t position, const T& value) {
    if (position > size_) throw MaxSizeExceeded();
    const T copy = value;
    make_room(size_ + 1);
    for (std::size_t i = size_++; i > position; --i) data()[i] = data()[i - 1];
    data()[position] = copy;
  }
  void resize(std::size_t size) {
    make_room(size);
    size_ = size;
  }
  void reserve(std::size_t size) { make_room(size); }
  void clear() noexcept { size_ = 0; }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ != nullptr ? heap_ : storage_; }
  const T* data() const noexcept { return heap_ != nullptr ? heap_ : storage_; }
  T* begin() noexcept { return data(); }
  const T* begin() const noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* end() const noexcept { return data() + size_; }

  T& at(std::size_t i) {
    if (i >= size_) throw std::out_of_range("atb::SVector: the index is not below the size");
    return data()[i];
  }
  const T& at(std::size_t i) const { return const_cast<SVector*>(this)->at(i); }
  T& operator[](std::size_t i) { return at(i); }
  const T& operator[](std::size_t i) const { return at(i); }

  bool operator==(const SVector& other) const {
    return size_ == other.size_ && std::equal(begin(), end(), other.begin());
  }
  bool operator!=(const SVector& other) const { return !(*this == other); }
  bool operator<(const SVector& other) const {
    return std::lexicographical_compare(begin(), end(), other.begin(), other.end());
  }

 private:
  void assign(const T* values, std::size_t size) {
    make_room(size);
    std::copy_n(values, size, data());
    size_ = size;
  }
  void make_room(std::size_t size) {
    if (size > MAX_SVECTOR_SIZE) throw MaxSizeExceeded();
    if (heap_ != nullptr || size <= DEFAULT_SVECTOR_SIZE) return;
    T* const heap = static_cast<T*>(std::malloc(MAX_SVECTOR_SIZE * sizeof(T)));
    if (heap == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < MAX_SVECTOR_SIZE; ++i) new (&heap[i]) T();
    std::copy_n(storage_, size_, heap);
    heap_ = heap;
    capacity_ = MAX_SVECTOR_SIZE;
  }

  std::size_t capacity_ = 0;  // of the heap
  std::size_t size_ = 0;
  T storage_[DEFAULT_SVECTOR_SIZE + 1] = {};
  T* heap_ = nullptr;
};

template <class T>
std::ostream& operator<<(std::ostream& stream, const SVector<T>& vector) {
  const char* separator = "";
  for (const T& value : vector) {
    stream << separator << value;
    separator = ",";
  }
  return stream;
}

}  // namespace atb
