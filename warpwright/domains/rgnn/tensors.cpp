// Questions to many tensors in one call: are they as they were, and at their versions? See tensors.py. Called with Python's lock held.
#include <Python.h>
#include <torch/csrc/autograd/python_variable.h>

#include <vector>

namespace {

// What a tensor was: its Python object and type, where it lies and how it is read.
struct Seen {
  const void* object;
  const void* type;
  const void* place;
  c10::ScalarType dtype;
  bool requires_grad;
  std::vector<int64_t> sizes, strides;
};

bool same(const Seen& seen, PyObject* object) {
  if (object != seen.object || Py_TYPE(object) != seen.type) return false;
  const at::Tensor& x = THPVariable_Unpack(object);
  return x.defined() && x.const_data_ptr() == seen.place && x.scalar_type() == seen.dtype && x.requires_grad() == seen.requires_grad &&
         x.sizes() == seen.sizes && x.strides() == seen.strides;
}

}  // namespace

// Remembers the tensors of a list; `forget` gives that back. Null where one is no tensor with memory.
extern "C" void* remember(PyObject* list) {
  auto* all = new std::vector<Seen>();
  try {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      PyObject* object = PyList_GET_ITEM(list, i);
      if (!THPVariable_Check(object)) throw 0;
      const at::Tensor& x = THPVariable_Unpack(object);
      all->push_back({object, Py_TYPE(object), x.const_data_ptr(), x.scalar_type(), x.requires_grad(), x.sizes().vec(), x.strides().vec()});
    }
  } catch (...) {
    delete all;
    return nullptr;
  }
  return all;
}

extern "C" void forget(void* all) { delete (std::vector<Seen>*)all; }

// Are the tensors of a list as those that were remembered?
extern "C" int holds(const void* all, PyObject* list) {
  const auto& seen = *(const std::vector<Seen>*)all;
  if ((size_t)PyList_GET_SIZE(list) != seen.size()) return 0;
  try {
    for (size_t i = 0; i < seen.size(); ++i)
      if (!same(seen[i], PyList_GET_ITEM(list, i))) return 0;
  } catch (...) {  // a tensor without memory
    return 0;
  }
  return 1;
}

// Have the dictionaries of a list the very values that the tuples beside them have, in their order?
extern "C" int hold_values(PyObject* tables, PyObject* values) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tables); ++i) {
    PyObject *table = PyList_GET_ITEM(tables, i), *own = PyList_GET_ITEM(values, i), *key, *value;
    if (PyDict_Size(table) != PyTuple_GET_SIZE(own)) return 0;
    Py_ssize_t at = 0;
    for (Py_ssize_t n = 0; PyDict_Next(table, &at, &key, &value); ++n)
      if (value != PyTuple_GET_ITEM(own, n)) return 0;
  }
  return 1;
}

// Are the tensors that weak references name there, at these versions, and do they lie and read as their other names do?
extern "C" int at_versions(const int64_t* versions, PyObject* refs, PyObject* others) {
  try {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(refs); ++i) {
      PyObject* object = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
      if (PyWeakref_GetRef(PyList_GET_ITEM(refs, i), &object) != 1) return 0;
      Py_DECREF(object);  // a caller has it: Python's lock is held
#else
      object = PyWeakref_GetObject(PyList_GET_ITEM(refs, i));
      if (object == Py_None) return 0;
#endif
      const at::Tensor &x = THPVariable_Unpack(object), &other = THPVariable_Unpack(PyList_GET_ITEM(others, i));
      if (other._version() != versions[i] || x.const_data_ptr() != other.const_data_ptr() || x.sizes() != other.sizes() ||
          x.strides() != other.strides())
        return 0;
    }
  } catch (...) {  // a tensor without memory
    return 0;
  }
  return 1;
}
