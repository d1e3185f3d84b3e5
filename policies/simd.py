"""Eight floats at once inside Numba kernels, so that a kernel's speed does not hang on LLVM's auto-vectoriser.

`zeros`, `load`, `store`, `multiply_add` and `maximum` work on vectors that LLVM keeps in registers: one AVX register,
two of NEON. `unit_stride` lets a kernel see that a row is contiguous although the array that it was taken from is not.
Nothing here checks bounds. Numba's cache does not follow imports: after an edit, touch the files that import this one.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, models, register_model

LANES = 8
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_ALL_FROM_FIRST_LANE = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
_FLOAT_BYTES = 4
_inlined: Any = intrinsic  # its own type would have callers pass the typing context


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


_VECTOR = _Vector()


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: _Vector) -> None:
        super().__init__(manager, vector, _FLOATS)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _FLOATS.as_pointer())


@_inlined
def zeros(typing_context: Any) -> Any:
    """A vector of zeros."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_FLOATS, [0.0] * LANES)

    return _VECTOR(), generate


@_inlined
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """The vector at `array[index : index + LANES]` of a contiguous float32 array of one dimension."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *args), align=_FLOAT_BYTES)

    return _VECTOR(array, types.intp), generate


@_inlined
def store(typing_context: Any, array: Any, index: Any, vector: Any) -> Any:
    """Writes the vector to `array[index : index + LANES]`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], *args[:2]), align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, _VECTOR), generate


@_inlined
def multiply_add(typing_context: Any, scalar: Any, vector: Any, total: Any) -> Any:
    """`scalar * vector + total`, in one rounding where the processor can."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        undefined = ir.Constant(_FLOATS, ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.IntType(32)(0))
        scalars = builder.shuffle_vector(first, undefined, _ALL_FROM_FIRST_LANE)
        return builder.fadd(builder.fmul(scalars, args[1], flags=("contract",)), args[2], flags=("contract",))

    return _VECTOR(types.float32, _VECTOR, _VECTOR), generate


@_inlined
def maximum(typing_context: Any, left: Any, right: Any) -> Any:
    """The greater of two vectors, lane by lane; NaN where either is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = args
        keep = builder.or_(builder.fcmp_ordered(">", a, b), builder.fcmp_unordered("uno", a, a))
        return builder.select(keep, a, b)

    return _VECTOR(_VECTOR, _VECTOR), generate


@_inlined
def unit_stride(typing_context: Any, row: Any) -> Any:
    """The same array of one dimension, known to be contiguous: the caller vouches for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, builder, signature.return_type, args[0])

    return row.copy(layout="C")(row), generate


@_inlined
def bits(typing_context: Any, number: Any) -> Any:
    """The bits of a float32 as an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@_inlined
def float_of(typing_context: Any, number: Any) -> Any:
    """The float32 that has the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate
