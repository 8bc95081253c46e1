// Copies, casts and constant fills.

#include <cstring>

#include <ATen/Parallel.h>

#include "cann/rows/engine/stored.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"
#include "host_cann/runtime/clear.h"

namespace aclnn_host::shape_copy_and_fill_rows {

namespace {

// Calls set(address, bytes) for pieces of the memory of a dense tensor, on several threads.
template <class Set>
void set_bytes(const at::Tensor& tensor, const Set& set) {
  constexpr int64_t kBytesOfTask = int64_t{1} << 23;  // less takes one thread under a millisecond
  char* const begin = static_cast<char*>(tensor.data_ptr());
  at::parallel_for(
      0, static_cast<int64_t>(tensor.nbytes()), kBytesOfTask,
      [&](int64_t first, int64_t last) { set(begin + first, static_cast<size_t>(last - first)); });
}

// memset takes half the time of ATen's loop, for masks of megabytes for example.
void fill_memory(const at::Tensor& tensor, const c10::Scalar& value) {
  if (tensor.element_size() > 1) {
    tensor.fill_(value);
    return;
  }
  const at::Tensor one = at::full({}, value, tensor.options());
  const auto byte = *static_cast<const unsigned char*>(one.const_data_ptr());
  set_bytes(tensor, [=](char* address, size_t count) { std::memset(address, byte, count); });
}

void fill(Output& self, const c10::Scalar& value) {
  self.write(
      self->scalar_type(), self->sizes(), Output::Reads::kSameElement,
      [&] { return at::full({}, value, self->options()).expand(self->sizes()); },
      [&](const at::Tensor& room) { fill_memory(room, value); });
}

}  // namespace

// Any type is cast to any other, and src is broadcast.
ACLNN(InplaceCopy, (InOut, selfRef), (In, src)) {
  selfRef.copy(src.expand(selfRef->sizes()));
}
ACLNN(Cast, (Stored<In>, self), (StoredDtype, dtype), (Stored<Out>, out)) {
  const at::ScalarType type = type_of_elements(dtype);
  EXPECT(type != at::ScalarType::Undefined, "dtype is ", static_cast<int64_t>(dtype),
         ", expected a data type that the host CANN supports");
  EXPECT(acl_type(type) == dtype || out.dtype() == dtype, "dtype is ", dtype_name(dtype),
         ", expected ", dtype_name(out.dtype()), ", the dtype of out");
  const at::ScalarType source = self.elements.scalar_type();
  const bool is_small = acl_type(type) != dtype || acl_type(source) != self.dtype;
  const auto is_float = [](at::ScalarType each) {
    return at::isFloatingType(each) && each != at::kDouble;
  };
  EXPECT(!is_small || (dtype == ACL_INT4 && self.dtype == ACL_INT32) ||
             (is_float(source) && is_float(type)),
         "self has dtype ", dtype_name(self.dtype), " and dtype is ", dtype_name(dtype),
         ", which the host CANN does not cast to one another; cast by way of FLOAT, or INT32 "
         "for INT4");
  EXPECT(self.format == out.format() || (!is_private(self.format) && !is_private(out.format())),
         "out has format ", static_cast<int64_t>(out.format()), ", expected ",
         static_cast<int64_t>(self.format), " as self has");
  out.copy(self.elements.to(type));
}

ACLNN(InplaceZero, (FilledInOut, selfRef)) {
  selfRef.write(
      selfRef->scalar_type(), selfRef->sizes(), Output::Reads::kSameElement,
      [&] { return at::zeros({}, selfRef->options()).expand(selfRef->sizes()); },
      [](const at::Tensor& room) { set_bytes(room, clear); });  // the number 0 of every type
}
ACLNN(InplaceOne, (FilledInOut, selfRef)) {
  fill(selfRef, 1);
}
ACLNN(InplaceFillScalar, (FilledInOut, selfRef), (Number, value)) {
  fill(selfRef, value);
}
ACLNN(InplaceFillTensor, (FilledInOut, selfRef), (In, value)) {
  EXPECT(value.numel() == 1, "value has shape ", value.sizes(), ", expected one element");
  selfRef.copy(value.reshape({}).expand(selfRef->sizes()));
}

ACLNN(CastV3, (In, x), (int64_t, dstType), (SameShape<Out>, y, "x")) {
  const aclDataType dtype = acl_type(y->scalar_type());
  EXPECT(dstType == static_cast<int64_t>(dtype), "dstType is ", dstType, ", expected ",
         static_cast<int64_t>(dtype), " (", dtype_name(dtype), "), the dtype of y");
  y.copy(x.to(y->scalar_type()));
}
ACLNN(TensorMove, (In, x), (Like<Out>, y, "x")) {
  y = x;
}

}  // namespace aclnn_host::shape_copy_and_fill_rows
