"""C++ from .proto files with the protoc that Debian installs."""

load("//third_party:debian.bzl", "repository_root")

def weft_proto_library(name, src, deps = [], visibility = None):
    """One cc_library with the messages of one .proto file.

    Args:
      name: the library's name.
      src: the .proto file; it is named from the top of the repository in imports.
      deps: other weft_proto_library targets whose files it imports.
      visibility: as usual.
    """
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_generated",
        srcs = [src] + [dep + "_source" for dep in deps],
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "protoc -I{root} --cpp_out=$(GENDIR)/{root} $(location {src})".format(
            root = repository_root(),
            src = src,
        ),
    )
    native.filegroup(
        name = name + "_source",
        srcs = [src],
        visibility = visibility,
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-Wno-all", "-Wno-extra"],
        visibility = visibility,
        deps = deps + ["//third_party:protobuf"],
    )
