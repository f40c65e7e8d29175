"""What several targets link of Debian's libraries."""

# Abseil's parts.
ABSL_LIBRARIES = [
    "bad_any_cast_impl",
    "bad_optional_access",
    "bad_variant_access",
    "base",
    "city",
    "civil_time",
    "cord",
    "cord_internal",
    "cordz_functions",
    "cordz_handle",
    "cordz_info",
    "debugging_internal",
    "demangle_internal",
    "examine_stack",
    "exponential_biased",
    "graphcycles_internal",
    "hash",
    "hashtablez_sampler",
    "int128",
    "log_severity",
    "low_level_hash",
    "malloc_internal",
    "raw_hash_set",
    "raw_logging_internal",
    "spinlock_wait",
    "stacktrace",
    "status",
    "statusor",
    "str_format_internal",
    "strerror",
    "strings",
    "strings_internal",
    "symbolize",
    "synchronization",
    "throw_delegate",
    "time",
    "time_zone",
]

# What a shared library of our own lists first among its linkopts, so that nothing is
# taken from these libraries' archives: Debian makes them for programs only.
SHARED_LIBRARIES = ["-labsl_" + name for name in ABSL_LIBRARIES] + ["-lprotobuf"]
