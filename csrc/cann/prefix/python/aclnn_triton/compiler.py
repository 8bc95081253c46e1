"""Compiles kernels for simulated NPUs; Triton's backend."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import BaseBackend, GPUTarget

from . import inductor, language, lowering
from .driver import library

language.install()
inductor.install()
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Options:
    """A launch's options. Those that shape the code for a device are accepted and have no effect."""

    debug: bool = False
    sanitize_overflow: bool = False
    arch: str = ""
    backend_name: str = "npu"
    num_warps: int = 1
    num_ctas: int = 1
    num_stages: int = 1
    warp_size: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "hf32", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: dict[str, str] | None = None
    instrumentation_mode: str = ""
    ir_override: str | None = None
    others: dict[str, Any] = field(default_factory=dict)

    def hash(self) -> str:
        """What compiled kernels depend on, for Triton's cache."""
        return hashlib.sha256(repr(sorted(self.__dict__.items())).encode()).hexdigest()


# Options of triton-ascend's kernels, which tell its compiler how to arrange buffers, pipelines and synchronisation.
NAMES_OF_ASCEND = """
    add_auto_scheduling auto_blockify_size auto_tile_and_bind_subblock auto_vectorize_v2_max_fused_ops_num
    bisheng_options cluster_dims compile_mode compile_on_910_95 disable_auto_inject_block_sync disable_fma
    disable_size_align_for_cast disable_tightly_coupled_buffer_reuse enable_auto_bind_sub_block
    enable_auto_vectorize_v2 enable_bishengir_simt_optimization enable_cce_vf_auto_sync enable_cce_vf_remove_membar
    enable_drop_unit_dims enable_flatten enable_hivm_auto_cv_balance enable_linearize
    enable_mask_fallback_conversion enable_mixed_cv enable_nd2nz_on_vector enable_persistent enable_select_analysis
    enable_simt_reorder_instruction enable_sync_block_lock enable_ubuf_saving enable_vf_fusion
    enable_warp_specialization force_simt_only force_simt_template hfusion_enable_multiple_consumer_fusion
    inject_barrier_all inject_block_all kernel_name limit_auto_multi_buffer_of_local_buffer
    limit_auto_multi_buffer_only_for_local_buffer llvm_version mix_mode multibuffer num_buffers_warp_spec
    num_consumer_groups optimize_dynamic_offset optimize_epilogue parallel_mode prevec_max_fused_ops_num
    reg_dec_producer reg_inc_consumer set_workspace_multibuffer shared_mem_dynamic_size simt_stack_limit sync_solver
    tile_mix_cube_loop tile_mix_vector_loop unit_flag use_bytecode vf_merge_level
"""
OF_ASCEND = NAMES_OF_ASCEND.split()


class SimulatedNpuBackend(BaseBackend):  # type: ignore[misc]
    """Triton's backend for simulated NPUs."""

    binary_ext = "aclnn"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """True for NPUs."""
        return bool(target.backend == "npu")

    @functools.lru_cache(maxsize=1)  # noqa: B019 (a backend lives as long as the process)
    def hash(self) -> str:
        """What compiled kernels depend on, for Triton's cache."""
        digest = hashlib.sha256(library().aclHostTritonOperations())
        for path in sorted(HERE.rglob("*.py")):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def parse_options(self, options: dict[str, Any]) -> Options:
        """The options of a launch."""
        known = {name.name for name in fields(Options)}
        others = {name: options[name] for name in OF_ASCEND if name in options}
        others |= options.get("others", {})
        given = {name: value for name, value in options.items() if name in known and name != "others"}
        result = Options(**{"arch": str(self.target.arch), **given, "others": others})
        result.__dict__.update(others)  # Triton refuses options that are no attributes
        return result

    def pack_metadata(self, metadata: Any) -> Any:
        """What the launcher gets."""
        return metadata

    def get_codegen_implementation(self, options: Options) -> dict[str, Any]:
        """Functions that Triton's front end asks for."""
        language.extend()
        return {"min_dot_size": lambda left, right: (1, 1, 1), "convert_custom_types": None}

    def get_module_map(self) -> dict[str, ModuleType]:
        """The module with the functions of ``triton.language.extra.libdevice``."""
        from triton.language.extra.cann import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """There are none beside Triton's."""

    def add_stages(self, stages: dict[str, Any], options: Options, language: object = None) -> None:
        """The stages of a compilation."""
        stages["ttir"] = lambda module, metadata: module
        stages["aclnn"] = lambda module, metadata: self.make_code(module, metadata)

    def make_code(self, module: Any, metadata: dict[str, Any]) -> bytes:
        """The code of a kernel."""
        text = generic_text(module)
        metadata["name"] = lowering.entry(text)
        metadata["shared"] = 0
        operations = library().aclHostTritonOperations().decode().split()
        folder = os.path.dirname(triton.__file__) + os.sep
        return lowering.lower(text, metadata["name"], operations, folder)


def generic_text(module: Any) -> str:
    """The module in MLIR's generic form.

    MLIR prints a module so that does not verify, as it is with a range whose length is no power of two.
    """
    from triton._C.libtriton import ir

    builder = ir.builder(module.context)
    function = builder.get_or_insert_function(module, "aclnn.generic", builder.get_function_ty([], []), "private", True)
    module.push_back(function)
    builder.set_insertion_point_to_start(function.add_entry_block())
    builder.set_loc("", 0, 0)
    builder.create_make_range(builder.get_block_ty(builder.get_int32_ty(), [3]), 0, 3)
    return str(module)
