"""Repositories made of what Debian installs, so that a build needs no network."""

_STUBS = {
    "rules_cc": {
        "BUILD.bazel": "",
        "cc/BUILD.bazel": "",
        "cc/defs.bzl": """
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
""",
    },
    "rules_java": {
        "BUILD.bazel": "",
        "java/BUILD.bazel": "",
        "java/defs.bzl": """
java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_package_configuration = native.java_package_configuration
java_plugin = native.java_plugin
java_runtime = native.java_runtime
java_test = native.java_test
java_toolchain = native.java_toolchain
""",
    },
    "coverage": {
        "BUILD.bazel": """
filegroup(name = "coverage_report_generator", visibility = ["//visibility:public"])
filegroup(name = "lcov_merger", visibility = ["//visibility:public"])
""",
    },
    "empty": {"BUILD.bazel": ""},
}

def _offline_stubs_impl(ctx):
    for path, content in _STUBS[ctx.attr.kind].items():
        ctx.file(path, content)

offline_stubs = repository_rule(
    implementation = _offline_stubs_impl,
    attrs = {"kind": attr.string(mandatory = True)},
)

def weft_repositories():
    """What a WORKSPACE that builds weft, or builds on it, needs besides weft.

    Bazel 4.2.3 as Debian builds it looks for these repositories on the network.
    Nothing in this project needs more of them than a few names.
    """
    offline_stubs(name = "rules_cc", kind = "rules_cc")
    offline_stubs(name = "rules_java", kind = "rules_java")
    offline_stubs(name = "remote_coverage_tools", kind = "coverage")
    offline_stubs(name = "rules_proto", kind = "empty")

def repository_root():
    """Where this repository's sources lie, seen from where commands run."""
    name = native.repository_name()[1:]
    return "external/" + name if name else "."
