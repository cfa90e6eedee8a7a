"""Two layers in Mojo, forward and backward, over the memory of NumPy arrays. Python sees them through mojo.importer."""

from std.os import abort
from std.python import PythonObject
from std.python.bindings import PythonModuleBuilder

comptime Values[dtype: DType] = Span[Scalar[dtype], MutAnyOrigin]


@export
def PyInit_layers() abi("C") -> PythonObject:
    try:
        var module = PythonModuleBuilder("layers")
        module.def_function[dense]("dense")
        module.def_function[dense_backward]("dense_backward")
        module.def_function[dense_backward_wrong]("dense_backward_wrong")
        module.def_function[relu]("relu")
        module.def_function[relu_backward]("relu_backward")
        return module.finalize()
    except error:
        abort(String("the module layers cannot be made: ", error))


def values[dtype: DType](array: PythonObject) raises -> Values[dtype]:
    if not Bool(py=array.flags.c_contiguous):
        raise Error("the array must be contiguous: np.ascontiguousarray(x)")
    var start = Pointer[Scalar[dtype], MutAnyOrigin](unsafe_from_address=Int(py=array.ctypes.data))
    return Values[dtype](unsafe_ptr=start, length=Int(py=array.size))


def is_double(array: PythonObject) raises -> Bool:
    """A gradient check is done in float64: a module that took those bytes for float32 would compute nonsense."""
    var name = String(py=array.dtype.name)
    if name != "float32" and name != "float64":
        raise Error("float32 or float64 is wanted, not " + name)
    return name == "float64"


def dense(x: PythonObject, w: PythonObject, b: PythonObject, y: PythonObject) raises -> PythonObject:
    """y = x @ w + b."""
    if is_double(x):
        dense_of[DType.float64](x, w, b, y)
    else:
        dense_of[DType.float32](x, w, b, y)
    return y


def dense_of[dtype: DType](x: PythonObject, w: PythonObject, b: PythonObject, y: PythonObject) raises:
    var inputs = Int(py=w.shape[0])
    var outputs = Int(py=w.shape[1])
    var xs = values[dtype](x)
    var ws = values[dtype](w)
    var bs = values[dtype](b)
    var ys = values[dtype](y)
    for n in range(Int(py=x.shape[0])):
        for o in range(outputs):
            var total = bs[o]
            for i in range(inputs):
                total += xs[n * inputs + i] * ws[i * outputs + o]
            ys[n * outputs + o] = total


def dense_backward(
    x: PythonObject, w: PythonObject, dy: PythonObject, dx: PythonObject, dw: PythonObject, db: PythonObject
) raises -> PythonObject:
    """Fills dx, dw and db."""
    if is_double(x):
        dense_backward_of[DType.float64, True](x, w, dy, dx, dw, db)
    else:
        dense_backward_of[DType.float32, True](x, w, dy, dx, dw, db)
    return dx


def dense_backward_wrong(
    x: PythonObject, w: PythonObject, dy: PythonObject, dx: PythonObject, dw: PythonObject, db: PythonObject
) raises -> PythonObject:
    """The same with `db[o] = …` in place of `db[o] += …`: of every batch only the last sample moves the bias."""
    if is_double(x):
        dense_backward_of[DType.float64, False](x, w, dy, dx, dw, db)
    else:
        dense_backward_of[DType.float32, False](x, w, dy, dx, dw, db)
    return dx


def dense_backward_of[dtype: DType, sums: Bool](
    x: PythonObject, w: PythonObject, dy: PythonObject, dx: PythonObject, dw: PythonObject, db: PythonObject
) raises:
    var inputs = Int(py=w.shape[0])
    var outputs = Int(py=w.shape[1])
    var xs = values[dtype](x)
    var ws = values[dtype](w)
    var dys = values[dtype](dy)
    var dxs = values[dtype](dx)
    var dws = values[dtype](dw)
    var dbs = values[dtype](db)
    for k in range(inputs * outputs):
        dws[k] = 0
    for o in range(outputs):
        dbs[o] = 0
    for n in range(Int(py=x.shape[0])):
        for i in range(inputs):
            var total = Scalar[dtype](0)
            for o in range(outputs):
                var d = dys[n * outputs + o]
                total += d * ws[i * outputs + o]
                dws[i * outputs + o] += xs[n * inputs + i] * d
            dxs[n * inputs + i] = total
        for o in range(outputs):
            comptime if sums:
                dbs[o] += dys[n * outputs + o]
            else:
                dbs[o] = dys[n * outputs + o]


def relu(x: PythonObject, y: PythonObject) raises -> PythonObject:
    if is_double(x):
        relu_of[DType.float64](x, x, y)
    else:
        relu_of[DType.float32](x, x, y)
    return y


def relu_backward(x: PythonObject, dy: PythonObject, dx: PythonObject) raises -> PythonObject:
    if is_double(x):
        relu_of[DType.float64](x, dy, dx)
    else:
        relu_of[DType.float32](x, dy, dx)
    return dx


def relu_of[dtype: DType](x: PythonObject, passed: PythonObject, y: PythonObject) raises:
    """What is passed on, where x is above zero."""
    var xs = values[dtype](x)
    var given = values[dtype](passed)
    var ys = values[dtype](y)
    for k in range(Int(py=x.size)):
        ys[k] = given[k] if xs[k] > 0 else Scalar[dtype](0)
