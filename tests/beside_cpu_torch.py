"""Runs a script as `python script` does, where torchvision's wheel lies beside a CPU build of torch.

That wheel is a CUDA build, and packages that import it, such as transformers, fail unless its operators are declared.
"""

import runpy
import sys

import torch

if torch.version.cuda is None:
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
runpy.run_path(sys.argv[1], run_name="__main__")
