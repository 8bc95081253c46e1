// Places for ATen's results: what lies there, and what does not.
#include <thread>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "host_cann/ops/result_places.h"

#undef CHECK  // c10's
#include "check.h"

using namespace aclnn_host;

namespace {

at::Tensor allocate(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::empty(sizes, at::TensorOptions(dtype));
}

bool lies_in(const at::Tensor& tensor, const at::Tensor& place) {
  return tensor.const_data_ptr() == place.const_data_ptr();
}

}  // namespace

TEST(the_first_of_a_places_sizes_lies_there) {
  const at::Tensor first = at::zeros({2, 3});
  const at::Tensor second = at::zeros({4});
  const ResultPlaces places({first, second});
  CHECK(!lies_in(allocate({3, 2}), first));
  CHECK(!lies_in(allocate({2, 3}, at::kDouble), first));
  const at::Tensor of_second = allocate({4});
  const at::Tensor of_first = at::full({2, 3}, 7.0f);  // allocates by the same operator
  CHECK(lies_in(of_first, first));
  CHECK(lies_in(of_second, second));
  CHECK_EQ(first.sum().item<float>(), 42.0f);
  CHECK(!lies_in(allocate({2, 3}), first));
  CHECK(!lies_in(allocate({4}), second));
}

TEST(the_memory_format_counts) {
  const at::Tensor place = allocate({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const ResultPlaces places({place});
  CHECK(!lies_in(allocate({2, 3, 4, 5}), place));
  const at::Tensor last =
      at::empty({2, 3, 4, 5}, at::TensorOptions(at::kFloat), at::MemoryFormat::ChannelsLast);
  CHECK(lies_in(last, place));
  CHECK(last.strides() == place.strides());
}

TEST(what_lies_there_has_the_strides_that_aten_gives) {
  const at::Tensor first = allocate({1, 3, 4, 5}).as_strided({1, 3, 4, 5}, {7, 1, 15, 3});
  const at::Tensor second = allocate({2, 1, 4, 5});
  const ResultPlaces places({first, second});
  const auto last = at::MemoryFormat::ChannelsLast;
  const at::Tensor one = at::empty({1, 3, 4, 5}, at::TensorOptions(at::kFloat), last);
  const at::Tensor other = at::empty({2, 1, 4, 5}, at::TensorOptions(at::kFloat), last);
  CHECK(lies_in(one, first) && lies_in(other, second));
  CHECK(one.strides() == at::IntArrayRef({60, 1, 15, 3}));
  CHECK(other.strides() == at::IntArrayRef({20, 1, 5, 1}));
  CHECK(lies_in(places.settled(one, 0), first));
  CHECK(lies_in(places.settled(other, 1), second));
}

TEST(what_gets_its_sizes_later_lies_there_too) {
  const at::Tensor place = allocate({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const ResultPlaces places({place});
  at::Tensor other = allocate({1});  // its elements must stay where they are
  other.resize_({2, 3, 4, 5}, at::MemoryFormat::ChannelsLast);
  CHECK(!lies_in(other, place));
  at::Tensor tensor = allocate({0});
  tensor.resize_({2, 3, 4, 5}, at::MemoryFormat::ChannelsLast);
  CHECK(lies_in(tensor, place));
  CHECK(tensor.strides() == place.strides());
}

TEST(places_are_the_threads_and_the_scopes) {
  const at::Tensor place = at::zeros({8});
  {
    const ResultPlaces places({place});
    std::thread([&] { CHECK(!lies_in(allocate({8}), place)); }).join();
  }
  CHECK(!lies_in(allocate({8}), place));
}

TEST(a_result_in_the_place_of_another_is_copied) {
  const at::Tensor first = at::zeros({2, 3});
  const at::Tensor second = at::zeros({2, 3});
  const ResultPlaces places({first, second});
  const at::Tensor early = at::full({2, 3}, 1.0f);
  const at::Tensor late = at::full({2, 3}, 2.0f);
  CHECK(lies_in(early, first) && lies_in(late, second));
  CHECK(lies_in(places.settled(early, 0), first));
  const at::Tensor moved = places.settled(early.select(0, 1), 1);
  CHECK(!lies_in(moved, early.select(0, 1)));
  CHECK(!lies_in(places.settled(early.t(), 0), first));
  CHECK_EQ(moved.sum().item<float>(), 3.0f);
  CHECK(!places.settled({}, 0).defined());
}

TEST(no_place_is_no_place) {
  const ResultPlaces places({});
  CHECK_EQ(allocate({0}).numel(), 0);
  CHECK_EQ(allocate({4}).numel(), 4);
}
