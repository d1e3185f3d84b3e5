"""Explicit vectors of floats in Numba kernels, whose speed then does not need LLVM's auto-vectorizer.

`zeros`, `load`, `broadcast`, `store`, `multiply_add` and `maximum` work on vectors that LLVM keeps in registers.
`LANES` floats fill one register of AVX-512 or AVX, or two of NEON. `wide_zeros` and `wide_load` make vectors of sixteen
everywhere. A tile holds sums (rows by vectors), so that each loaded vector is used for every row and each loaded scalar
for every vector. `unit_stride` tells a kernel that a row is contiguous although it comes from an array that is not.
Nothing here checks bounds.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.core.codegen import get_host_cpu_features
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, models, register_model

WIDE_LANES = 16
_FLOAT_BYTES = 4
_inlined: Any = intrinsic  # untyped: its own type would make callers pass the typing context


class _Vector(types.Type):
    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"float32x{lanes}")


LANES, TILE_ROWS = (16, 8) if "+avx512f" in get_host_cpu_features() else (8, 4)
"""With three vectors per row, a tile, its operands and a scalar fill 28 of AVX-512's 32 registers, or AVX's 16."""
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


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    undefined = ir.Constant(_floats(vector), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    all_from_first = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
    return builder.shuffle_vector(first, undefined, all_from_first)


@_inlined
def zeros(typing_context: Any) -> Any:
    """A vector of zeros."""
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
    """The vector at `array[index : index + WIDE_LANES]` of an array as in `load`."""
    return _load(_WIDE_VECTOR, array)


@_inlined
def store(typing_context: Any, array: Any, index: Any, vector: Any) -> Any:
    """Writes the vector's lanes to `array[index :]`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], vector, *args[:2]), align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@_inlined
def broadcast(typing_context: Any, array: Any, index: Any) -> Any:
    """A vector with `array[index]` in every lane, of a contiguous float32 array of one dimension."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _splat(builder, builder.load(builder.gep(data, [args[1]])), _VECTOR)

    return _VECTOR(array, types.intp), generate


@_inlined
def multiply_add(typing_context: Any, factor: Any, vector: Any, total: Any) -> Any:
    """`factor * vector + total`, in one rounding where the processor can. The factor is a scalar or a vector."""

    is_vector = factor == vector

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        factors = args[0] if is_vector else _splat(builder, args[0], vector)
        return builder.fadd(builder.fmul(factors, args[1], flags=("contract",)), args[2], flags=("contract",))

    return vector(vector if is_vector else types.float32, vector, vector), generate


@_inlined
def maximum(typing_context: Any, left: Any, right: Any) -> Any:
    """The greater of two vectors, lane by lane. NaN if either is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = args
        keep = builder.or_(builder.fcmp_ordered(">", a, b), builder.fcmp_unordered("uno", a, a))
        return builder.select(keep, a, b)

    return _VECTOR(_VECTOR, _VECTOR), generate


@_inlined
def unit_stride(typing_context: Any, row: Any) -> Any:
    """The same array of one dimension, marked as contiguous. The caller guarantees that it is."""

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


class _Tile(types.Type):
    def __init__(self, rows: int, vectors: int) -> None:
        self.rows, self.vectors = rows, vectors
        super().__init__(name=f"tile{rows}x{vectors}")


@register_model(_Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, manager: Any, tile: _Tile) -> None:
        super().__init__(manager, tile, _sums(tile))


def _sums(tile: Any) -> Any:
    return ir.ArrayType(_floats(_VECTOR), tile.rows * tile.vectors)


@_inlined
def tile_of(typing_context: Any, scalars: Any, first: Any, starts: Any) -> Any:
    """A tile of `TILE_ROWS` rows with one vector for each of `starts`. Row r is filled with `scalars[first + r]`."""
    tile = _Tile(TILE_ROWS, len(starts))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sums = ir.Constant(_sums(tile), ir.Undefined)
        numbers = context.make_array(signature.args[0])(context, builder, args[0]).data
        for r in range(tile.rows):
            index = builder.add(args[1], ir.Constant(args[1].type, r))
            vector = _splat(builder, builder.load(builder.gep(numbers, [index])), _VECTOR)
            for v in range(tile.vectors):
                sums = builder.insert_value(sums, vector, r * tile.vectors + v)
        return sums

    return tile(scalars, types.intp, starts), generate


@_inlined
def tile_add(typing_context: Any, tile: Any, scalars: Any, first: Any, step: Any, array: Any, starts: Any) -> Any:
    """The tile plus, in row r, `scalars[first + r * step]` times the vector of `array` at each of the starts."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sums, scalars, first, step, array, starts = args
        vectors = []
        for v in range(tile.vectors):
            pointer = _pointer(context, builder, signature.args[4], _VECTOR, array, builder.extract_value(starts, v))
            vectors.append(builder.load(pointer, align=_FLOAT_BYTES))
        numbers = context.make_array(signature.args[1])(context, builder, scalars).data
        for r in range(tile.rows):
            index = builder.add(first, builder.mul(step, ir.Constant(step.type, r)))
            factors = _splat(builder, builder.load(builder.gep(numbers, [index])), _VECTOR)
            for v in range(tile.vectors):
                k = r * tile.vectors + v
                product = builder.fmul(factors, vectors[v], flags=("contract",))
                total = builder.fadd(product, builder.extract_value(sums, k), flags=("contract",))
                sums = builder.insert_value(sums, total, k)
        return sums

    return tile(tile, scalars, types.intp, types.intp, array, starts), generate


@_inlined
def tile_store(typing_context: Any, tile: Any, array: Any, first: Any, step: Any) -> Any:
    """Writes row r of the tile, its vectors one after another, to `array[first + r * step :]`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sums, array, first, step = args
        for r in range(tile.rows):
            for v in range(tile.vectors):
                index = builder.add(first, builder.mul(step, ir.Constant(step.type, r)))
                index = builder.add(index, ir.Constant(step.type, v * LANES))
                pointer = _pointer(context, builder, signature.args[1], _VECTOR, array, index)
                builder.store(builder.extract_value(sums, r * tile.vectors + v), pointer, align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(tile, array, types.intp, types.intp), generate


@_inlined
def copy_some(typing_context: Any, source: Any, index: Any, count: Any, target: Any, to: Any) -> Any:
    """Writes the first `LANES` numbers of `source[index : index + count]`, or all, to `target[to :]`, and no others."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = _load_some(context, builder, signature.args[0], *args[:3])
        pointer = _pointer(context, builder, signature.args[3], _VECTOR, args[3], args[4])
        lanes = _first_lanes(builder, args[2])
        _masked(builder, "store", ir.VoidType(), vector, pointer, ir.IntType(32)(_FLOAT_BYTES), lanes)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp), generate


@_inlined
def copy_every_second(typing_context: Any, source: Any, index: Any, count: Any, target: Any, to: Any) -> Any:
    """Writes every second of `source[index : index + count]`, first included, then zeros, to `LANES` of `target`.

    What is beyond twice `LANES` numbers is left out.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.Constant(args[2].type, LANES)
        low = _load_some(context, builder, signature.args[0], *args[:3])
        beyond = builder.add(args[1], lanes), builder.sub(args[2], lanes)
        high = _load_some(context, builder, signature.args[0], args[0], *beyond)
        even = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(0, 2 * LANES, 2)))
        pointer = _pointer(context, builder, signature.args[3], _VECTOR, args[3], args[4])
        builder.store(builder.shuffle_vector(low, high, even), pointer, align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp), generate


def _first_lanes(builder: Any, count: Any) -> Any:
    numbers = ir.VectorType(ir.IntType(32), LANES)
    undefined = ir.Constant(numbers, ir.Undefined)
    first = builder.insert_element(undefined, builder.trunc(count, ir.IntType(32)), ir.IntType(32)(0))
    counts = builder.shuffle_vector(first, undefined, ir.Constant(numbers, [0] * LANES))
    return builder.icmp_signed("<", ir.Constant(numbers, list(range(LANES))), counts)


def _load_some(context: Any, builder: Any, array_type: Any, array: Any, index: Any, count: Any) -> Any:
    pointer = _pointer(context, builder, array_type, _VECTOR, array, index)
    lanes, rest = _first_lanes(builder, count), ir.Constant(_floats(_VECTOR), None)
    return _masked(builder, "load", rest.type, pointer, ir.IntType(32)(_FLOAT_BYTES), lanes, rest)


def _masked(builder: Any, what: str, kind: Any, *args: Any) -> Any:
    name = f"llvm.masked.{what}.v{LANES}f32.p0"
    function = ir.FunctionType(kind, [argument.type for argument in args])
    return builder.call(get_or_insert_function(builder.module, function, name), args)
