"""Eight or sixteen floats at once inside Numba kernels, so that their speed does not hang on LLVM's auto-vectoriser.

`zeros`, `load`, `store`, `multiply_add` and `maximum` work on vectors that LLVM keeps in registers: eight floats are
one AVX register, two of NEON; sixteen, from `wide_zeros` and `wide_load`, are one of AVX-512. `unit_stride` lets a
kernel see that a row is contiguous although the array that it was taken from is not.
Nothing here checks bounds. Numba's cache does not follow imports: after an edit, touch the files that import this one.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, models, register_model

LANES = 8
WIDE_LANES = 16
_FLOAT_BYTES = 4
_inlined: Any = intrinsic  # its own type would have callers pass the typing context


class _Vector(types.Type):
    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"float32x{lanes}")


_VECTOR, _WIDE_VECTOR = _Vector(LANES), _Vector(WIDE_LANES)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: _Vector) -> None:
        super().__init__(manager, vector, _floats(vector))


def _floats(vector: Any) -> Any:
    return ir.VectorType(ir.FloatType(), vector.lanes)


def _pointer(context: Any, builder: Any, array_type: Any, vector: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _floats(vector).as_pointer())


def _zeros(vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_floats(vector), [0.0] * vector.lanes)

    return vector(), generate


def _load(vector: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], vector, *args), align=_FLOAT_BYTES)

    return vector(array, types.intp), generate


@_inlined
def zeros(typing_context: Any) -> Any:
    """A vector of eight zeros."""
    return _zeros(_VECTOR)


@_inlined
def wide_zeros(typing_context: Any) -> Any:
    """A vector of sixteen zeros."""
    return _zeros(_WIDE_VECTOR)


@_inlined
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """The vector at `array[index : index + LANES]` of a contiguous float32 array of one dimension."""
    return _load(_VECTOR, array)


@_inlined
def wide_load(typing_context: Any, array: Any, index: Any) -> Any:
    """The vector at `array[index : index + WIDE_LANES]`, as `load` takes it."""
    return _load(_WIDE_VECTOR, array)


@_inlined
def store(typing_context: Any, array: Any, index: Any, vector: Any) -> Any:
    """Writes the vector's lanes to `array[index :]`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], vector, *args[:2]), align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@_inlined
def multiply_add(typing_context: Any, scalar: Any, vector: Any, total: Any) -> Any:
    """`scalar * vector + total`, in one rounding where the processor can."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        undefined = ir.Constant(_floats(vector), ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.IntType(32)(0))
        all_from_first = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
        scalars = builder.shuffle_vector(first, undefined, all_from_first)
        return builder.fadd(builder.fmul(scalars, args[1], flags=("contract",)), args[2], flags=("contract",))

    return vector(types.float32, vector, vector), generate


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
