"""Tests on random models: many in every run, several thousand in the long one."""

def property_test(name, deps, more, **kwargs):
    """Makes `name`, and `name`_long, which only tools/test.sh --long runs.

    Args:
      name: of the test and its source.
      deps: of both.
      more: how many times as many models the long one tries.
      **kwargs: for both.
    """
    for suffix, env, size, tags in [
        ("", {}, "small", []),
        ("_long", {"WEFT_RANDOM_MODELS": str(more)}, "enormous", ["long", "manual"]),
    ]:
        native.cc_test(
            name = name + suffix,
            size = size,
            timeout = "moderate" if size == "small" else "eternal",
            srcs = [name + ".cc"],
            env = env,
            tags = tags,
            deps = deps,
            **kwargs
        )
