"""Settings for every test.

Hypothesis runs derandomised: a failure on one machine is a failure on every machine, and `make soundness` can tell
a mutant that dies from a test that was lucky.
"""

import torch
from hypothesis import settings

settings.register_profile("tacit", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("tacit")

# torchvision's wheel is a CUDA build: beside a CPU build of torch it imports only once its operators are declared.
if torch.version.cuda is None:
    _operators = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
