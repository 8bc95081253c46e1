// Logical and bitwise operations.

#include "cann/rows/row.h"

namespace aclnn_host::elementwise_logic_rows {

ACLNN_BINARY(LogicalAnd, at::logical_and)
ACLNN_INPLACE_BINARY(LogicalAnd, at::logical_and)
ACLNN_BINARY(LogicalOr, at::logical_or)
ACLNN_INPLACE_BINARY(LogicalOr, at::logical_or)
ACLNN_BINARY(LogicalXor, at::logical_xor)
ACLNN_UNARY(LogicalNot, at::logical_not)
ACLNN_INPLACE_UNARY(LogicalNot, at::logical_not)
ACLNN_BINARY_OF(Integral<In>, Integral<In>, BitwiseAndTensor, at::bitwise_and)
ACLNN_INPLACE_BINARY_OF(Integral<InOut>, Integral<In>, BitwiseAndTensor, at::bitwise_and)
ACLNN_BINARY_OF(Integral<In>, Number, BitwiseAndScalar, at::bitwise_and)
ACLNN_INPLACE_BINARY_OF(Integral<InOut>, Number, BitwiseAndScalar, at::bitwise_and)
ACLNN_BINARY_OF(Integral<In>, Integral<In>, BitwiseAndTensorOut, at::bitwise_and)
ACLNN(InplaceBitwiseAndTensorOut, (Integral<InOut>, self), (Integral<In>, other)) {
  self = at::bitwise_and(self, other);
}

ACLNN_BINARY_OF(Integral<In>, Integral<In>, BitwiseOrTensor, at::bitwise_or)
ACLNN_INPLACE_BINARY_OF(Integral<InOut>, Integral<In>, BitwiseOrTensor, at::bitwise_or)
ACLNN_BINARY_OF(Integral<In>, Number, BitwiseOrScalar, at::bitwise_or)
ACLNN_INPLACE_BINARY_OF(Integral<InOut>, Number, BitwiseOrScalar, at::bitwise_or)
ACLNN_BINARY_OF(Integral<In>, Integral<In>, BitwiseXorTensor, at::bitwise_xor)
ACLNN_INPLACE_BINARY_OF(Integral<InOut>, Integral<In>, BitwiseXorTensor, at::bitwise_xor)
ACLNN_BINARY_OF(Integral<In>, Number, BitwiseXorScalar, at::bitwise_xor)
ACLNN_INPLACE_BINARY_OF(Integral<InOut>, Number, BitwiseXorScalar, at::bitwise_xor)
ACLNN_UNARY_OF(Integral<In>, BitwiseNot, at::bitwise_not)
ACLNN_BINARY_OF(Integral<In>, Integral<In>, LeftShift, at::bitwise_left_shift)
ACLNN_BINARY_OF(Integral<In>, Number, LeftShifts, at::bitwise_left_shift)
ACLNN_BINARY_OF(Integral<In>, Integral<In>, RightShift, at::bitwise_right_shift)

}  // namespace aclnn_host::elementwise_logic_rows
