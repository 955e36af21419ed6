"""Compiler flags: the settings of torch that switch a part of the compiler off.

From ``torch/_inductor/config.py``, ``torch/_functorch/config.py`` and ``torch/_dynamo/config.py``, 2.0 to 2.15; the
parts that torch's own ``compiler_bisector`` goes through are among them. The agent passes over what a build lacks.
"""

from __future__ import annotations

from typing import Any

Flag = tuple[str, Any]

DYNAMO: tuple[Flag, ...] = (
    ("_dynamo.config.skip_nnmodule_hook_guards", False),
    ("_dynamo.config.capture_autograd_function", False),
    ("_dynamo.config.automatic_dynamic_shapes", False),
    ("_dynamo.config.inline_inbuilt_nn_modules", False),
    ("_dynamo.config.guard_nn_modules_using_dict_tags", False),
    ("_dynamo.config.skip_tensor_guards_with_matching_dict_tags", False),
    ("_dynamo.config.skip_no_tensor_aliasing_guards_on_parameters", False),
    ("_dynamo.config.use_lamba_guard_for_object_aliasing", False),
    ("_dynamo.config.use_recursive_dict_tags_for_guards", False),
    ("_dynamo.config.enable_cpp_guard_manager", False),
    ("_dynamo.config.fake_tensor_cache_enabled", False),
    ("_dynamo.config.rewrite_assert_with_torch_assert", False),
    ("_dynamo.config.specialize_float", True),
    ("_dynamo.config.trace_numpy", False),
)
"""Flags of the front end; tried on every backend."""

AOT: tuple[Flag, ...] = (
    ("_functorch.config.view_replay_for_aliased_outputs", False),
    ("_functorch.config.treat_parameters_as_free_to_save", False),
    ("_functorch.config.donated_buffer", False),
    ("_functorch.config.guess_tangent_strides_as_outputs", False),
)
"""Flags of the ahead-of-time autograd; tried from ``aot_eager`` on."""

PARTITION: tuple[Flag, ...] = (
    ("_functorch.config.cse", False),
    ("_functorch.config.ban_recompute_not_in_allowlist", False),
    ("_functorch.config.ban_recompute_reductions", False),
    ("_functorch.config.ban_recompute_used_far_apart", False),
)
"""Flags of the partitioner and its clean-ups; tried from ``aot_eager_decomp_partition`` on."""

INDUCTOR: tuple[Flag, ...] = (
    ("_inductor.config.emulate_precision_casts", True),
    ("_inductor.config.eager_numerics.division_rounding", True),
    ("_inductor.config.pattern_matcher", False),
    ("_inductor.config.use_pre_grad_passes", False),
    ("_inductor.config.use_joint_graph_passes", False),
    ("_inductor.config.use_post_grad_passes", False),
    ("_inductor.config.epilogue_fusion", False),
    ("_inductor.config.prologue_fusion", False),
    ("_inductor.config.max_fusion_size", 1),
    ("_inductor.config.loop_ordering_after_fusion", False),
    ("_inductor.config.split_reductions", False),
    ("_inductor.config.online_softmax", False),
    ("_inductor.config.reorder_for_locality", False),
    ("_inductor.config.reorder_for_peak_memory", False),
    ("_inductor.config.inplace_buffers", False),
    ("_inductor.config.allow_buffer_reuse", False),
    ("_inductor.config.layout_optimization", False),
    ("_inductor.config.comprehensive_padding", False),
    ("_inductor.config.shape_padding", False),
    ("_inductor.config.optimize_scatter_upon_const_tensor", False),
    ("_inductor.config.delay_realize_cheap_outputs", False),
    ("_inductor.config.enable_auto_functionalized_v2", False),
    ("_inductor.config.combo_kernels", False),
    ("_inductor.config.cpp.simdlen", 1),
    ("_inductor.config.cpp.enable_tiling_heuristics", False),
    ("_inductor.config.cpp.enable_loop_tail_vec", False),
    ("_inductor.config.cpp.weight_prepack", False),
    ("_inductor.config.triton.mix_order_reduction", False),
    ("_inductor.config.triton.cudagraphs", False),
)
"""Flags of the back end; tried on ``inductor`` alone."""


def flags_for(backend: str) -> tuple[Flag, ...]:
    """Return the flags that can matter on a backend of the ladder, cheapest part of the compiler first."""
    known = {
        "eager": DYNAMO,
        "aot_eager": DYNAMO + AOT,
        "aot_eager_decomp_partition": DYNAMO + AOT + PARTITION,
        "inductor": INDUCTOR + PARTITION + AOT,
    }
    return known.get(backend, INDUCTOR + PARTITION + AOT)


def flag_text(flag: Flag) -> str:
    """Return a flag as a person types it: ``torch._inductor.config.epilogue_fusion = False``."""
    name, value = flag
    return f"torch.{name} = {value!r}"
