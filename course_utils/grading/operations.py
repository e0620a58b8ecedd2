"""The operations of PyTorch that an answer "from primitives" may be made of.

`Calls` takes down which operations an answer calls, and how many. Those on the list do
one thing: a product, a sum, a comparison, a softmax, another shape. A whole layer, a
loss or a recurrent cell is not on it, whatever name it has, nor are complex numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

ONE_THING = """
abs absolute acos add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin
aminmax any arange argmax argmin argsort argwhere as_tensor asarray atleast_1d
atleast_2d atleast_3d baddbmm bincount bitwise_and bitwise_not bitwise_or
bitwise_xor block_diag bmm bool broadcast_shapes broadcast_tensors broadcast_to
bucketize cartesian_prod cat ceil chain_matmul chunk clamp clamp_max clamp_min clip
clone column_stack combinations concat concatenate contiguous copy_ copysign cos
cosh count_nonzero cpu cross cummax cummin cumprod cumsum data_ptr detach diag
diag_embed diagonal diagonal_scatter diff dim dist div divide dot double dsplit
dstack dtype einsum element_size empty empty_like eq equal erf exp exp2 expand
expand_as expm1 eye fill_ fill_diagonal_ flatten flip fliplr flipud float
float_power floor floor_divide fmax fmin fmod full full_like gather ge get_device
greater greater_equal gt half hsplit hstack index_add index_copy index_fill
index_put index_put_ index_select inner int inverse is_complex is_contiguous
is_floating_point is_nonzero isclose isfinite isin isinf isnan item kron le lerp
less less_equal linalg_inv linalg_matrix_norm linalg_multi_dot linalg_norm
linalg_solve linalg_vector_norm linear linspace log log10 log1p log2 log_softmax
logaddexp logical_and logical_not logical_or logical_xor logsumexp long lt
masked_fill masked_fill_ masked_scatter masked_select matmul matrix_exp max maximum
mean median meshgrid min minimum mm moveaxis movedim mul mul_ multiply mv nan_to_num
nanmean nansum narrow ndim ndimension ne neg negative nelement nonzero norm
normalize not_equal numel numpy one_hot ones ones_like outer pad permute pow prod
ravel reciprocal relu relu_ remainder repeat repeat_interleave requires_grad_
reshape reshape_as resolve_neg reverse roll rot90 round rsqrt rsub scalar_tensor
scatter scatter_ scatter_add searchsorted select select_scatter sgn short sigmoid
sigmoid_ sign sin sinh size slice_scatter softmax sort split split_with_sizes sqrt
square squeeze stack std std_mean storage_offset stride sub sub_ subtract sum
swapaxes swapdims t take take_along_dim tan tanh tanh_ tensor tensor_split
tensordot tile to tolist topk trace transpose tril tril_indices triu triu_indices
true_divide trunc type type_as unbind unflatten unfold unique unsafe_chunk unsqueeze
unsqueeze_ var var_mean vdot vector_norm view view_as vsplit vstack where xlogy
zero_ zeros zeros_like new_tensor new_zeros new_ones new_full new_empty multi_dot
add_ div_ pow_ sqrt_ exp_ clamp_ scatter_add_ index_copy_ index_add_ scatter_reduce
matrix_norm inv solve cosine_similarity cdist backward grad register_hook dim_order
_set_grad_enabled set_grad_enabled is_grad_enabled requires_grad promote_types
result_type can_cast rand randn randint randperm rand_like randn_like uniform_ normal_
manual_seed bernoulli multinomial get_default_dtype set_default_dtype retain_grad
special_entr entr expit linalg_matmul linalg_vecdot linalg_diagonal
arccos arcsin arctan arctan2 asin atan atan2 acosh asinh atanh
softplus logsigmoid leaky_relu gelu elu hardtanh dropout
device _record_function_enter_new _record_function_exit._RecordFunction
"""
BASIC = set(ONE_THING.split())
BASIC |= {f"{name}_" for name in BASIC}  # the same in place
BASIC |= {f"special_{name}" for name in BASIC}  # the same by another name


class Calls(TorchFunctionMode):
    """Count the operations that are called, and keep the names of those not listed."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.others: set[str] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if not (name.startswith("__") and name.endswith("__")):
            self.count += 1
            if name not in BASIC:
                self.others.add(name)
        if isinstance(result, torch.Tensor) and result.dtype.is_complex:
            self.others.add("complex")
        return result
