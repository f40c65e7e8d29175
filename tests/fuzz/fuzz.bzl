"""Fuzz targets as tests: few mutations in every run, many in the long one."""

def fuzz_test(name, target, corpus, mutations, long_mutations):
    """Makes `name`, and `name`_long, which only tools/test.sh --long runs.

    Args:
      name: ends in _fuzz_test.
      target: the cc_library that defines LLVMFuzzerTestOneInput.
      corpus: files that are damaged.
      mutations: of each file, in every run.
      long_mutations: of each file, in the long run.
    """
    for suffix, count, size, tags in [
        ("", mutations, "small", []),
        ("_long", long_mutations, "enormous", ["long", "manual"]),
    ]:
        native.cc_test(
            name = name + suffix,
            size = size,
            srcs = ["driver.cc"],
            args = [str(count)] + ["$(rootpath %s)" % file for file in corpus],
            data = corpus,
            tags = tags,
            deps = [
                ":mutate",
                target,
            ],
        )
