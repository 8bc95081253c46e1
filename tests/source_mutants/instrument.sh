#!/bin/sh
# A launcher of the compiler: the sources that get mutants, and the C++ tests, which include their headers, are compiled
# so that they report the functions that they enter (reach.cpp). All else is compiled as it is for the release.
case "$*" in
  */csrc/client/* | */csrc/host_cann/runtime/* | */csrc/host_cann/descriptors/* | */csrc/cann/hccl/* | \
  */csrc/cann/profiling/* | */csrc/torch_ops/* | */tests/cpp/*)
    set -- "$@" -g1 -finstrument-functions -finstrument-functions-exclude-file-list=/usr/,site-packages,tests/,rows/ ;;
esac
exec ${CCACHE:+"$CCACHE"} "$@"
