from __future__ import annotations

from tests.aten_ops.formulas import formula


@formula("aclnnAdd", "aclnnInplaceAdd", "aclnnAdds", "aclnnInplaceAdds", "aclnnAddV3", "aclnnInplaceAddV3")
def add(self, other, alpha):
    return self + alpha * other
