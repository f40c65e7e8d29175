#!/bin/sh
# With the Python that Debian has.
exec python3 "$@"
