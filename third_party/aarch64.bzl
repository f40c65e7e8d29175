"""A toolchain that compiles for 64-bit ARM on another processor.

It is made of Debian's cross compiler, the headers that Debian installed for this
machine, and static libraries for arm64, which are fetched the first time that
something is built with --config=aarch64 and by nothing else.
"""

_BUILD = """
load("@bazel_tools//tools/cpp:unix_cc_toolchain_config.bzl", "cc_toolchain_config")

package(default_visibility = ["//visibility:public"])

filegroup(name = "none")

cc_toolchain_suite(
    name = "toolchain",
    toolchains = {{"aarch64": ":gcc"}},
)

cc_toolchain(
    name = "gcc",
    all_files = ":none",
    compiler_files = ":none",
    dwp_files = ":none",
    linker_files = ":none",
    objcopy_files = ":none",
    strip_files = ":none",
    toolchain_config = ":config",
)

cc_toolchain_config(
    name = "config",
    abi_libc_version = "glibc",
    abi_version = "gcc",
    compile_flags = [
        "-fstack-protector",
        "-fno-omit-frame-pointer",
    ],
    compiler = "gcc",
    cpu = "aarch64",
    cxx_builtin_include_directories = [
        "/usr/aarch64-linux-gnu/include",
        "/usr/lib/gcc-cross/aarch64-linux-gnu",
        "/usr/include",
        "{folder}/include",
    ],
    cxx_flags = ["-std=c++17", "-isystem", "{folder}/include"],
    dbg_compile_flags = ["-g"],
    host_system_name = "local",
    link_flags = ["-L{folder}/lib", "-Wl,-rpath-link,{folder}/lib"],
    link_libs = [
        "-lstdc++",
        "-lm",
    ],
    opt_compile_flags = [
        "-g0",
        "-O2",
        "-DNDEBUG",
        "-ffunction-sections",
        "-fdata-sections",
    ],
    opt_link_flags = ["-Wl,--gc-sections"],
    supports_start_end_lib = False,
    target_libc = "glibc",
    target_system_name = "aarch64-linux-gnu",
    tool_paths = {tools},
    toolchain_identifier = "aarch64-linux-gnu",
    unfiltered_compile_flags = ["-no-canonical-prefixes"],
)
"""

def _aarch64_toolchain_impl(ctx):
    tools = {"llvm-cov": "/bin/false"}  # not looked at, but wanted
    for tool in ["ar", "cpp", "dwp", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]:
        path = ctx.which("aarch64-linux-gnu-" + tool)
        if path == None and tool == "gcc":
            fail("aarch64: no aarch64-linux-gnu-gcc: run tools/install.sh --aarch64")
        tools[tool] = str(path) if path != None else "/bin/false"
    folder = str(ctx.path("arm64"))
    result = ctx.execute(["sh", ctx.path(ctx.attr._fetch), folder])
    if result.return_code != 0:
        fail("aarch64: cannot fetch libraries for arm64: check the network and the package " +
             "sources: " + result.stderr)
    ctx.file("BUILD.bazel", _BUILD.format(
        folder = folder,
        tools = repr(tools),
    ))

aarch64_toolchain = repository_rule(
    implementation = _aarch64_toolchain_impl,
    attrs = {
        "_fetch": attr.label(default = "//third_party:arm64_libraries.sh"),
    },
)
