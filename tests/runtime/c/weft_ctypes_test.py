"""The C interface from Python's ctypes: the same tokens as the command line's.

weft_ctypes_test.py LIBWEFT WEFT WEFT_H EXPORTS
"""

import ctypes
import json
import re
import subprocess
import sys

library, binary, header, exports = sys.argv[1:]
weft = ctypes.CDLL(library)
weft.weft_error.restype = ctypes.c_char_p


class Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("tokens", ctypes.POINTER(ctypes.c_int32)),
        ("token_count", ctypes.c_size_t),
        ("text", ctypes.c_char_p),
        ("text_size", ctypes.c_size_t),
        ("parse_special", ctypes.c_int32),
        ("choices", ctypes.c_int32),
        ("max_tokens", ctypes.c_int64),
        ("min_tokens", ctypes.c_int64),
        ("temperature", ctypes.c_float),
    ]  # the rest is left to the library: struct_size says so


class Event(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("request", ctypes.c_int64),
        ("choice", ctypes.c_int32),
        ("finished", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("last", ctypes.c_int32),
        ("text", ctypes.c_char_p),
        ("text_size", ctypes.c_size_t),
        ("tokens", ctypes.POINTER(ctypes.c_int32)),
        ("logprobs", ctypes.POINTER(ctypes.c_double)),
        ("token_count", ctypes.c_size_t),
        ("error", ctypes.c_char_p),
    ]


Callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(Event), ctypes.c_void_p)


def check(code):
    if code != 0:
        raise SystemExit("FAILED: " + weft.weft_error().decode())


def generate(engine, prompt, max_tokens):
    text, tokens = "", []

    def take(event, _):
        nonlocal text
        text += event.contents.text.decode()
        tokens.extend(event.contents.tokens[: event.contents.token_count])

    request = Request()
    check(weft.weft_request_init(ctypes.byref(request),
                                 ctypes.c_size_t(ctypes.sizeof(request))))
    request.text = prompt.encode()
    request.max_tokens = max_tokens
    request.temperature = 0
    check(weft.weft_generate(engine, ctypes.byref(request), Callback(take), None))
    return text, tokens


engine = ctypes.c_void_p()
check(weft.weft_load(None, None, ctypes.byref(engine)))
prompt = "It is a truth universally acknowledged, that"
text, tokens = generate(engine, prompt, 20)
weft.weft_free(engine)

wanted = json.loads(subprocess.run(
    [binary, "run", "-p", prompt, "-n", "20", "--temperature", "0", "--json"],
    check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
assert tokens == wanted["tokens"], (tokens, wanted["tokens"])
assert text == wanted["text"], (text, wanted["text"])

assert weft.weft_load(b"nowhere.gguf", None, ctypes.byref(engine)) == 2
assert b"nowhere.gguf" in weft.weft_error()

declared = set(re.findall(r"WEFT_API[^;(]*?\b(weft_\w+)\(", open(header).read()))
exported = set(re.findall(r"^\s+(weft_\w+);", open(exports).read(), re.M))
assert declared == exported, declared ^ exported
for name in declared:
    getattr(weft, name)
assert not hasattr(weft, "weft_default_model_begin")
print("PASSED")
