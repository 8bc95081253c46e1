"""`python -m aclnn_torch`."""

import sys

from aclnn_torch.cli import main

sys.exit(main())
