#!/bin/sh
# A launcher of the compiler: sources in the folders INSTRUMENTED are compiled so that they report the functions that
# they enter (reach.cpp), all others as for the release.
options=
for folder in $INSTRUMENTED; do
  case "$*" in
    *"/$folder/"*) options="-g1 -finstrument-functions -finstrument-functions-exclude-file-list=/usr/,site-packages,tests/,rows/" ;;
  esac
done
# shellcheck disable=SC2086  # the options are words
exec ${CCACHE:+"$CCACHE"} "$@" $options
