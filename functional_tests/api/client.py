#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests OpenVINO's and GenAI's C APIs as bindings of other languages use them: opens libraries by
name, looks functions up, passes structs by value, arrays of properties and callbacks.

    client.py COMPAT_DIR MODELS_DIR [DEVICE]

Exit code 77: there is no such device.
"""
import ctypes as c
import json
import math
import struct
import sys
import unittest
from pathlib import Path

COMPAT, MODELS, DEVICE = Path("."), Path("."), "CPU"
OK, GENERAL_ERROR, PARAMETER_MISMATCH, OUT_OF_BOUNDS = 0, -1, -4, -6
INVALID_C_PARAM, UNKNOW_EXCEPTION = -14, -17
F32, U8 = 4, 16


class Shape(c.Structure):
    _fields_ = [("rank", c.c_int64), ("dims", c.POINTER(c.c_int64))]


class Dimension(c.Structure):
    _fields_ = [("min", c.c_int64), ("max", c.c_int64)]


class PartialShape(c.Structure):
    _fields_ = [("rank", Dimension), ("dims", c.POINTER(Dimension))]


class Property(c.Structure):
    _fields_ = [("key", c.c_char_p), ("value", c.c_void_p)]


class Version(c.Structure):
    _fields_ = [("build", c.c_char_p), ("description", c.c_char_p)]


class Devices(c.Structure):
    _fields_ = [("devices", c.POINTER(c.c_char_p)), ("size", c.c_size_t)]


CALLBACK = c.CFUNCTYPE(None, c.c_void_p)
STREAMER = c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_void_p)
LOG = c.CFUNCTYPE(None, c.c_char_p)


class Callback(c.Structure):
    _fields_ = [("function", CALLBACK), ("args", c.c_void_p)]


class Streamer(c.Structure):
    _fields_ = [("function", STREAMER), ("args", c.c_void_p)]


HANDLE, OUT, TEXT, SIZE = c.c_void_p, c.POINTER(c.c_void_p), c.c_char_p, c.c_size_t
SIZES, FLOATS = c.POINTER(c.c_size_t), c.POINTER(c.c_float)

# Arguments by function; the result is a status unless RESULTS has another type.
OPENVINO = {
    "ov_get_openvino_version": [c.POINTER(Version)],
    "ov_version_free": [c.POINTER(Version)],
    "ov_get_error_info": [c.c_int],
    "ov_get_last_err_msg": [],
    "ov_free": [HANDLE],
    "ov_core_create": [OUT],
    "ov_core_free": [HANDLE],
    "ov_core_get_available_devices": [HANDLE, c.POINTER(Devices)],
    "ov_available_devices_free": [c.POINTER(Devices)],
    "ov_core_get_property": [HANDLE, TEXT, TEXT, OUT],
    "ov_core_set_properties": [HANDLE, TEXT, SIZE, c.POINTER(Property)],
    "ov_core_read_model": [HANDLE, TEXT, TEXT, OUT],
    "ov_core_read_model_from_memory_buffer": [HANDLE, TEXT, SIZE, HANDLE, OUT],
    "ov_core_compile_model_props": [HANDLE, HANDLE, TEXT, SIZE, c.POINTER(Property), OUT],
    "ov_model_free": [HANDLE],
    "ov_model_is_dynamic": [HANDLE],
    "ov_model_inputs_size": [HANDLE, SIZES],
    "ov_model_reshape_single_input": [HANDLE, PartialShape],
    "ov_model_const_input": [HANDLE, OUT],
    "ov_port_get_partial_shape": [HANDLE, c.POINTER(PartialShape)],
    "ov_port_get_any_name": [HANDLE, OUT],
    "ov_output_const_port_free": [HANDLE],
    "ov_partial_shape_to_string": [PartialShape],
    "ov_partial_shape_to_shape": [PartialShape, c.POINTER(Shape)],
    "ov_partial_shape_is_dynamic": [PartialShape],
    "ov_partial_shape_free": [c.POINTER(PartialShape)],
    "ov_dimension_is_dynamic": [Dimension],
    "ov_shape_free": [c.POINTER(Shape)],
    "ov_tensor_create_from_host_ptr": [c.c_int, Shape, HANDLE, OUT],
    "ov_tensor_create": [c.c_int, Shape, OUT],
    "ov_tensor_get_shape": [HANDLE, c.POINTER(Shape)],
    "ov_tensor_get_byte_size": [HANDLE, SIZES],
    "ov_tensor_data": [HANDLE, OUT],
    "ov_tensor_free": [HANDLE],
    "ov_compiled_model_create_infer_request": [HANDLE, OUT],
    "ov_compiled_model_get_property": [HANDLE, TEXT, OUT],
    "ov_compiled_model_free": [HANDLE],
    "ov_infer_request_set_input_tensor": [HANDLE, HANDLE],
    "ov_infer_request_get_output_tensor": [HANDLE, OUT],
    "ov_infer_request_set_callback": [HANDLE, c.POINTER(Callback)],
    "ov_infer_request_infer": [HANDLE],
    "ov_infer_request_start_async": [HANDLE],
    "ov_infer_request_wait_for": [HANDLE, c.c_int64],
    "ov_infer_request_free": [HANDLE],
    "ov_util_set_log_callback": [LOG],
    "ov_util_reset_log_callback": [],
}
GENAI = {
    "ov_genai_llm_pipeline_free": [HANDLE],
    "ov_genai_llm_pipeline_generate":
        [HANDLE, TEXT, HANDLE, c.POINTER(Streamer), OUT],
    "ov_genai_llm_pipeline_generate_with_history":
        [HANDLE, HANDLE, HANDLE, c.POINTER(Streamer), OUT],
    "ov_genai_generation_config_create": [OUT],
    "ov_genai_generation_config_set_max_new_tokens": [HANDLE, SIZE],
    "ov_genai_generation_config_set_temperature": [HANDLE, c.c_float],
    "ov_genai_generation_config_set_do_sample": [HANDLE, c.c_bool],
    "ov_genai_generation_config_validate": [HANDLE],
    "ov_genai_generation_config_free": [HANDLE],
    "ov_genai_decoded_results_get_string": [HANDLE, TEXT, SIZES],
    "ov_genai_decoded_results_get_perf_metrics": [HANDLE, OUT],
    "ov_genai_decoded_results_perf_metrics_free": [HANDLE],
    "ov_genai_decoded_results_free": [HANDLE],
    "ov_genai_perf_metrics_get_num_generation_tokens": [HANDLE, SIZES],
    "ov_genai_perf_metrics_get_throughput": [HANDLE, FLOATS, FLOATS],
    "ov_genai_json_container_create_from_json_string": [OUT, TEXT],
    "ov_genai_json_container_to_json_string": [HANDLE, TEXT, SIZES],
    "ov_genai_json_container_free": [HANDLE],
    "ov_genai_chat_history_create": [OUT],
    "ov_genai_chat_history_push_back": [HANDLE, HANDLE],
    "ov_genai_chat_history_get_messages": [HANDLE, OUT],
    "ov_genai_chat_history_size": [HANDLE, SIZES],
    "ov_genai_chat_history_free": [HANDLE],
}
RESULTS = {
    "ov_get_error_info": c.c_char_p,
    "ov_get_last_err_msg": c.c_void_p,
    "ov_partial_shape_to_string": c.c_void_p,
    "ov_model_is_dynamic": c.c_bool,
    "ov_partial_shape_is_dynamic": c.c_bool,
    "ov_dimension_is_dynamic": c.c_bool,
}
# Not in the tables above, because their number of arguments varies.
VARIADIC = ("ov_core_compile_model", "ov_core_set_property")
GENAI_VARIADIC = ("ov_genai_llm_pipeline_create",)
KEYS = {
    "ov_property_key_device_full_name": b"FULL_DEVICE_NAME",
    "ov_property_key_hint_performance_mode": b"PERFORMANCE_HINT",
    "ov_property_key_cache_dir": b"CACHE_DIR",
    "ov_property_key_inference_num_threads": b"INFERENCE_NUM_THREADS",
    "ov_property_key_intel_gpu_context_type": b"CONTEXT_TYPE",
}


def library(name, table):
    lib = c.CDLL(str(COMPAT / name))
    for function, arguments in table.items():
        f = getattr(lib, function)
        f.argtypes, f.restype = arguments, RESULTS.get(function, c.c_int)
    return lib


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ov = library("libopenvino_c.so", OPENVINO)
        cls.genai = library("libopenvino_genai_c.so", GENAI)

    def good(self, status):
        self.assertEqual(status, OK, self.last_error())

    def made(self, function, *arguments):
        """Returns the handle that a function stores through its last argument."""
        out = c.c_void_p()
        self.good(function(*arguments, c.byref(out)))
        return out

    def text(self, address):
        """Returns the text of a string that the library made, and frees it."""
        if not address:
            return None
        value = c.string_at(address).decode()
        self.ov.ov_free(address)
        return value

    def last_error(self):
        return self.text(self.ov.ov_get_last_err_msg())


def shape_of(*dims):
    return Shape(len(dims), (c.c_int64 * len(dims))(*dims))


def partial_of(*dims):
    list_of = (Dimension * len(dims))(*[Dimension(*d) for d in dims])
    return PartialShape(Dimension(len(dims), len(dims)), list_of)


def properties_of(**values):
    keep = [c.create_string_buffer(v.encode()) for v in values.values()]
    pairs = [Property(k.encode(), c.cast(v, c.c_void_p)) for k, v in zip(values, keep)]
    array = (Property * len(pairs))(*pairs)
    array.keep = keep
    return array


class Libraries(Client):
    def test_all_names_are_there(self):
        for name in ("libopenvino_c.so", "libopenvino_c.so.2641", "libopenvino_c.so.2640",
                     "libopenvino_c.so.2630", "libopenvino.so"):
            lib = c.CDLL(str(COMPAT / name))
            for function in (*OPENVINO, *VARIADIC):
                self.assertTrue(hasattr(lib, function), f"{name}: {function}")
        for name in ("libopenvino_genai_c.so", "libopenvino_genai_c.so.2640",
                     "libopenvino_genai_c.so.2630", "libopenvino_genai.so"):
            lib = c.CDLL(str(COMPAT / name))
            for function in (*GENAI, *GENAI_VARIADIC):
                self.assertTrue(hasattr(lib, function), f"{name}: {function}")

    def test_keys_are_variables(self):
        for name, key in KEYS.items():
            self.assertEqual(c.c_char_p.in_dll(self.ov, name).value, key)

    def test_version_and_texts(self):
        v = Version()
        self.good(self.ov.ov_get_openvino_version(c.byref(v)))
        self.assertRegex(v.build.decode(), r"^\d+\.\d+")
        self.ov.ov_version_free(c.byref(v))
        self.assertIsNone(v.build)
        self.assertEqual(self.ov.ov_get_error_info(-8), b"request is busy")


class Structs(Client):
    def test_partial_shapes_by_value(self):
        cases = (([(1, 1), (20, 20)], "{1,20}", False), ([(-1, -1), (1, 8)], "{?,1..8}", True))
        for dims, text, dynamic in cases:
            p = partial_of(*dims)
            self.assertEqual(self.text(self.ov.ov_partial_shape_to_string(p)), text)
            self.assertEqual(self.ov.ov_partial_shape_is_dynamic(p), dynamic)
        s = Shape()
        self.good(self.ov.ov_partial_shape_to_shape(partial_of((3, 3), (4, 4)), c.byref(s)))
        self.assertEqual((s.rank, s.dims[0], s.dims[1]), (2, 3, 4))
        self.good(self.ov.ov_shape_free(c.byref(s)))
        self.assertEqual(
            self.ov.ov_partial_shape_to_shape(partial_of((1, 4)), c.byref(s)), PARAMETER_MISMATCH)
        self.assertTrue(self.ov.ov_dimension_is_dynamic(Dimension(1, 4)))
        self.assertFalse(self.ov.ov_dimension_is_dynamic(Dimension(4, 4)))

    def test_tensors(self):
        t = self.made(self.ov.ov_tensor_create, F32, shape_of(2, 3))
        n, s = c.c_size_t(), Shape()
        self.good(self.ov.ov_tensor_get_byte_size(t, c.byref(n)))
        self.assertEqual(n.value, 24)
        self.good(self.ov.ov_tensor_get_shape(t, c.byref(s)))
        self.assertEqual(s.dims[:s.rank], [2, 3])
        self.ov.ov_shape_free(c.byref(s))
        self.ov.ov_tensor_free(t)
        wrong = c.c_void_p()
        self.assertEqual(self.ov.ov_tensor_create_from_host_ptr(F32, shape_of(1), None,
                                                                c.byref(wrong)), INVALID_C_PARAM)
        self.assertIsNone(wrong.value)


# ---- a model of text -------------------------------------------------------------------

def port(number, dims, name=None):
    names = f' names="{name}"' if name else ""
    sizes = "".join(f"<dim>{d}</dim>" for d in dims)
    return f'<port id="{number}" precision="FP32"{names}>{sizes}</port>'


def layer(number, kind, data, inputs, dims=None, name=None):
    ports = "".join(port(i, d) for i, d in enumerate(inputs))
    out = f"<output>{port(len(inputs), dims, name)}</output>" if dims else ""
    return (f'<layer id="{number}" name="{name or "sink"}_node" type="{kind}" version="opset1">'
            f'<data {data}/>{"<input>" + ports + "</input>" if ports else ""}{out}</layer>')


WEIGHTS = [0.1 * (i % 7) - 0.3 for i in range(4 * 3)]


def mlp(rows):
    """prob [rows,3] = softmax(data [rows,4] W)"""
    dim = "?" if rows < 0 else rows
    layers = (layer(0, "Parameter", f'shape="{dim},4" element_type="f32"', [], [rows, 4], "data")
              + layer(1, "Const", 'element_type="f32" shape="4,3" offset="0" size="48"', [], [4, 3],
                      "w")
              + layer(2, "MatMul", 'transpose_a="false" transpose_b="false"', [[rows, 4], [4, 3]],
                      [rows, 3], "product")
              + layer(3, "SoftMax", 'axis="1"', [[rows, 3]], [rows, 3], "prob")
              + layer(4, "Result", "", [[rows, 3]]))
    edges = "".join(f'<edge from-layer="{a}" from-port="{p}" to-layer="{b}" to-port="{q}"/>'
                    for a, p, b, q in ((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (3, 1, 4, 0)))
    return (f'<?xml version="1.0"?><net name="mlp" version="11"><layers>{layers}</layers>'
            f"<edges>{edges}</edges></net>").encode()


def expected(row):
    z = [math.exp(sum(x * WEIGHTS[3 * i + k] for i, x in enumerate(row))) for k in range(3)]
    return [x / sum(z) for x in z]


class Models(Client):
    def setUp(self):
        self.core = self.made(self.ov.ov_core_create)
        self.bytes = c.create_string_buffer(struct.pack("<12f", *WEIGHTS))
        weights = self.made(self.ov.ov_tensor_create_from_host_ptr, U8, shape_of(48), self.bytes)
        text = mlp(-1)
        self.model = self.made(self.ov.ov_core_read_model_from_memory_buffer, self.core, text,
                               len(text), weights)
        self.ov.ov_tensor_free(weights)

    def tearDown(self):
        self.ov.ov_model_free(self.model)
        self.ov.ov_core_free(self.core)

    def compile(self):
        p = properties_of(INFERENCE_PRECISION_HINT="f32", PERFORMANCE_HINT="LATENCY")
        return self.made(self.ov.ov_core_compile_model_props, self.core, self.model,
                         DEVICE.encode(), len(p), p)

    def result(self, request):
        out = self.made(self.ov.ov_infer_request_get_output_tensor, request)
        s = Shape()
        self.good(self.ov.ov_tensor_get_shape(out, c.byref(s)))
        n = s.dims[0] * s.dims[1]
        self.ov.ov_shape_free(c.byref(s))
        data = c.cast(self.made(self.ov.ov_tensor_data, out), FLOATS)[:n]
        self.ov.ov_tensor_free(out)
        return data

    def test_devices_and_properties(self):
        d = Devices()
        self.good(self.ov.ov_core_get_available_devices(self.core, c.byref(d)))
        self.assertTrue(any(d.devices[i].decode().startswith(DEVICE) for i in range(d.size)))
        self.ov.ov_available_devices_free(c.byref(d))
        self.assertEqual(d.size, 0)
        p = properties_of(PERF_COUNT="YES", PERFORMANCE_HINT="THROUGHPUT")
        self.good(self.ov.ov_core_set_properties(self.core, DEVICE.encode(), len(p), p))
        value = self.made(self.ov.ov_core_get_property, self.core, DEVICE.encode(), b"PERF_COUNT")
        self.assertEqual(self.text(value.value), "YES")
        self.good(self.ov.ov_core_set_property(self.core, DEVICE.encode(), b"PERF_COUNT", b"NO"))

    def test_ports(self):
        self.assertTrue(self.ov.ov_model_is_dynamic(self.model))
        p = self.made(self.ov.ov_model_const_input, self.model)
        name = self.made(self.ov.ov_port_get_any_name, p)
        self.assertEqual(self.text(name.value), "data")
        s = PartialShape()
        self.good(self.ov.ov_port_get_partial_shape(p, c.byref(s)))
        self.assertEqual((s.dims[0].min, s.dims[0].max, s.dims[1].max), (0, -1, 4))
        self.ov.ov_partial_shape_free(c.byref(s))
        self.ov.ov_output_const_port_free(p)
        self.good(self.ov.ov_model_reshape_single_input(self.model, partial_of((5, 5), (4, 4))))
        self.assertFalse(self.ov.ov_model_is_dynamic(self.model))
        wrong = partial_of((5, 5), (9, 9))
        self.assertEqual(self.ov.ov_model_reshape_single_input(self.model, wrong), GENERAL_ERROR)
        self.assertIn("product", self.last_error())

    def test_runs(self):
        compiled = self.compile()
        request = self.made(self.ov.ov_compiled_model_create_infer_request, compiled)
        for rows in (1, 3):
            numbers = [0.25 * i - 1 for i in range(4 * rows)]
            memory = (c.c_float * len(numbers))(*numbers)
            t = self.made(self.ov.ov_tensor_create_from_host_ptr, F32, shape_of(rows, 4), memory)
            self.good(self.ov.ov_infer_request_set_input_tensor(request, t))
            self.good(self.ov.ov_infer_request_infer(request))
            found = self.result(request)
            want = [x for r in range(rows) for x in expected(numbers[4 * r:4 * r + 4])]
            for a, b in zip(found, want):
                self.assertAlmostEqual(a, b, places=5)
            self.ov.ov_tensor_free(t)
        self.ov.ov_infer_request_free(request)
        self.ov.ov_compiled_model_free(compiled)

    def test_callbacks(self):
        compiled, ended, lines = self.compile(), [], []
        request = self.made(self.ov.ov_compiled_model_create_infer_request, compiled)
        callback = Callback(CALLBACK(ended.append), 42)
        log = LOG(lines.append)
        self.ov.ov_util_set_log_callback(log)
        self.good(self.ov.ov_infer_request_set_callback(request, c.byref(callback)))
        t = self.made(self.ov.ov_tensor_create, F32, shape_of(1, 4))
        self.good(self.ov.ov_infer_request_set_input_tensor(request, t))
        for _ in range(3):
            self.good(self.ov.ov_infer_request_start_async(request))
            self.good(self.ov.ov_infer_request_wait_for(request, 60000))
        self.assertEqual(ended, [42, 42, 42])
        self.ov.ov_util_reset_log_callback()
        self.ov.ov_tensor_free(t)
        self.ov.ov_infer_request_free(request)
        self.ov.ov_compiled_model_free(compiled)

    def test_variadic_properties(self):
        f = self.ov.ov_core_compile_model
        out = c.c_void_p()
        self.good(f(self.core, self.model, DEVICE.encode(), c.c_size_t(2), c.byref(out),
                    c.c_char_p(b"PERFORMANCE_HINT"), c.c_char_p(b"LATENCY")))
        name = self.made(self.ov.ov_compiled_model_get_property, out, b"NETWORK_NAME")
        self.assertEqual(self.text(name.value), "mlp")
        self.ov.ov_compiled_model_free(out)

    def test_failures_leave_a_sentence(self):
        out = c.c_void_p()
        self.assertEqual(self.ov.ov_core_read_model(self.core, b"nothing.xml", None, c.byref(out)),
                         GENERAL_ERROR)
        self.assertIsNone(out.value)
        self.assertIn("nothing.xml", self.last_error())
        self.assertEqual(self.ov.ov_core_read_model(None, b"x.xml", None, c.byref(out)),
                         INVALID_C_PARAM)


# ---- GenAI -----------------------------------------------------------------------------

class Texts(Client):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = str(MODELS / "qwen3moe-tiny/ov/int4_asym_g64").encode()
        cls.pipe = c.c_void_p()
        status = cls.genai.ov_genai_llm_pipeline_create(path, DEVICE.encode(), c.c_size_t(0),
                                                        c.byref(cls.pipe))
        if status != OK:
            raise RuntimeError(f"the pipeline gives {status}")

    @classmethod
    def tearDownClass(cls):
        cls.genai.ov_genai_llm_pipeline_free(cls.pipe)

    def setUp(self):
        self.config = self.made(self.genai.ov_genai_generation_config_create)
        self.good(self.genai.ov_genai_generation_config_set_max_new_tokens(self.config, 8))

    def tearDown(self):
        self.genai.ov_genai_generation_config_free(self.config)

    def string(self, function, handle):
        """Returns a text, by asking for its size first and then for the text."""
        n = c.c_size_t()
        self.good(function(handle, None, c.byref(n)))
        buffer = c.create_string_buffer(n.value)
        self.good(function(handle, buffer, c.byref(n)))
        return buffer.value.decode()

    def json(self, text):
        out = c.c_void_p()
        self.good(self.genai.ov_genai_json_container_create_from_json_string(c.byref(out),
                                                                             text.encode()))
        return out

    def generate(self, streamer=None):
        results = self.made(self.genai.ov_genai_llm_pipeline_generate, self.pipe,
                            b"Paris is the capital of", self.config, streamer)
        text = self.string(self.genai.ov_genai_decoded_results_get_string, results)
        return text, results

    def test_streams_what_it_gives(self):
        pieces = []

        def take(piece, _):
            pieces.append(piece)
            return 0
        text, results = self.generate(c.byref(Streamer(STREAMER(take), None)))
        self.assertGreater(len(text), 0)
        self.assertEqual(b"".join(pieces).decode(), text)
        metrics = self.made(self.genai.ov_genai_decoded_results_get_perf_metrics, results)
        n, mean, deviation = c.c_size_t(), c.c_float(), c.c_float()
        self.good(self.genai.ov_genai_perf_metrics_get_num_generation_tokens(metrics, c.byref(n)))
        self.assertTrue(1 <= n.value <= 8)
        self.good(self.genai.ov_genai_perf_metrics_get_throughput(metrics, c.byref(mean),
                                                                  c.byref(deviation)))
        self.genai.ov_genai_decoded_results_perf_metrics_free(metrics)
        self.genai.ov_genai_decoded_results_free(results)

    def test_stops_when_the_callback_says_so(self):
        whole, results = self.generate()
        self.genai.ov_genai_decoded_results_free(results)
        short, results = self.generate(c.byref(Streamer(STREAMER(lambda *_: 1), None)))
        self.genai.ov_genai_decoded_results_free(results)
        self.assertLess(len(short), len(whole))
        self.assertTrue(whole.startswith(short))

    def test_too_small_a_buffer(self):
        text, results = self.generate()
        n = c.c_size_t(len(text.encode()))  # without the NUL
        buffer = c.create_string_buffer(n.value)
        self.assertEqual(self.genai.ov_genai_decoded_results_get_string(results, buffer,
                                                                        c.byref(n)), OUT_OF_BOUNDS)
        self.genai.ov_genai_decoded_results_free(results)

    def test_history(self):
        history = self.made(self.genai.ov_genai_chat_history_create)
        message = self.json('{"role":"user","content":"Who are you?"}')
        self.good(self.genai.ov_genai_chat_history_push_back(history, message))
        self.genai.ov_genai_json_container_free(message)
        n = c.c_size_t()
        self.good(self.genai.ov_genai_chat_history_size(history, c.byref(n)))
        self.assertEqual(n.value, 1)
        messages = self.made(self.genai.ov_genai_chat_history_get_messages, history)
        text = self.string(self.genai.ov_genai_json_container_to_json_string, messages)
        self.assertEqual(json.loads(text), [{"role": "user", "content": "Who are you?"}])
        self.genai.ov_genai_json_container_free(messages)
        results = self.made(self.genai.ov_genai_llm_pipeline_generate_with_history, self.pipe,
                            history, self.config, None)
        self.assertTrue(self.string(self.genai.ov_genai_decoded_results_get_string, results))
        self.genai.ov_genai_decoded_results_free(results)
        self.genai.ov_genai_chat_history_free(history)

    def test_configs_are_checked(self):
        self.good(self.genai.ov_genai_generation_config_validate(self.config))
        self.good(self.genai.ov_genai_generation_config_set_do_sample(self.config, True))
        self.good(self.genai.ov_genai_generation_config_set_temperature(self.config, 0.0))
        self.assertEqual(self.genai.ov_genai_generation_config_validate(self.config),
                         UNKNOW_EXCEPTION)


def has_device():
    lib = library("libopenvino_c.so", OPENVINO)
    core, value = c.c_void_p(), c.c_void_p()
    found = (lib.ov_core_create(c.byref(core)) == OK and lib.ov_core_get_property(
        core, DEVICE.encode(), b"FULL_DEVICE_NAME", c.byref(value)) == OK)
    lib.ov_free(value)
    lib.ov_core_free(core)
    return found


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: client.py COMPAT_DIR MODELS_DIR [DEVICE]")
    COMPAT, MODELS = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    DEVICE = sys.argv[3] if len(sys.argv) == 4 else DEVICE
    if not has_device():
        print(f"there is no device {DEVICE}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
