#pragma once

namespace aclnn_host::hccl {

class Communicator;

// Removes the windows of a communicator that ends.
void end_windows(const Communicator& of);

}  // namespace aclnn_host::hccl
